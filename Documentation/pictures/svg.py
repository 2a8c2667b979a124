# SPDX-License-Identifier: GPL-2.0
"""A picture as the text of an SVG file: the same text for the same calls, on every machine."""

import math
from xml.sax.saxutils import escape, quoteattr

INK = "#222222"
GREY = "#8a8a8a"
PALE = "#f1f1ee"
WHITE = "#ffffff"
RED = "#c1121f"
BLUE = "#0077b6"
GREEN = "#2a7f3b"
AMBER = "#d98200"
TINTS = {RED: "#f7d9d6", BLUE: "#d3e8f4", GREEN: "#d8ecd9", AMBER: "#fbe7c4", GREY: PALE}

FONT = "DejaVu Sans, Verdana, Arial, sans-serif"


def number(value):
    """A coordinate: to a tenth, as sines differ in their last digits."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


class Picture:
    """Shapes on white; what is drawn later lies on top."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.shapes = []
        self.rect(0, 0, width, height, fill=WHITE, stroke="none", radius=0)

    def _add(self, name, text=None, **attributes):
        """One element; None as a value leaves an attribute out."""
        told = "".join(
            f" {key.replace('_', '-')}="
            + quoteattr(number(value) if isinstance(value, (int, float)) else value)
            for key, value in attributes.items() if value is not None)
        self.shapes.append(f"<{name}{told}/>" if text is None
                           else f"<{name}{told}>{escape(text)}</{name}>")

    def rect(self, x, y, width, height, fill=PALE, stroke=INK, radius=6, dashes=None):
        """A box."""
        self._add("rect", x=x, y=y, width=width, height=height, rx=radius, fill=fill,
                  stroke=stroke, stroke_dasharray=dashes)

    def circle(self, x, y, radius, fill=INK):
        """A dot."""
        self._add("circle", cx=x, cy=y, r=radius, fill=fill)

    def text(self, x, y, text, size=13, anchor="middle", colour=INK, bold=False, halo=False):
        """A line of text, its middle at height @y; with @halo what lies below keeps off."""
        self._add("text", text, x=x, y=y + 0.35 * size, font_size=size, text_anchor=anchor,
                  fill=colour, font_weight="bold" if bold else None,
                  paint_order="stroke" if halo else None, stroke=WHITE if halo else None,
                  stroke_width=5 if halo else None)

    def lines(self, x, y, texts, size=13, **style):
        """Lines of text below each other, the middle of them all at height @y."""
        step = 1.35 * size
        for i, text in enumerate(texts):
            self.text(x, y + (i - (len(texts) - 1) / 2) * step, text, size, **style)

    def box(self, x, y, width, height, texts, colour=GREY, size=13):
        """A box with text in it; the first line is its name."""
        self.rect(x, y, width, height, fill=TINTS[colour], stroke=colour)
        step = 1.35 * size
        top = y + height / 2 - (len(texts) - 1) / 2 * step
        for i, text in enumerate(texts):
            self.text(x + width / 2, top + i * step, text, size if i == 0 else size - 2,
                      bold=i == 0)

    def line(self, points, colour=INK, dashes=None, width=1.4):
        """A line through points."""
        self._add("polyline", points=" ".join(f"{number(x)},{number(y)}" for x, y in points),
                  fill="none", stroke=colour, stroke_width=width, stroke_dasharray=dashes)

    def arrow(self, points, colour=INK, dashes=None):
        """A line through points with a head at its end."""
        (x0, y0), (x1, y1) = points[-2:]
        angle = math.atan2(y1 - y0, x1 - x0)
        back = (x1 - 7 * math.cos(angle), y1 - 7 * math.sin(angle))
        self.line(points[:-1] + [back], colour, dashes)
        self._head(x1, y1, angle, colour)

    def curve(self, start, control, end, colour=INK):
        """A bent arrow."""
        angle = math.atan2(end[1] - control[1], end[0] - control[0])
        back = (end[0] - 7 * math.cos(angle), end[1] - 7 * math.sin(angle))
        points = " ".join(f"{number(x)} {number(y)}" for x, y in (control, back))
        self._add("path", d=f"M{number(start[0])} {number(start[1])}Q{points}", fill="none",
                  stroke=colour, stroke_width=1.4)
        self._head(end[0], end[1], angle, colour)

    def _head(self, x, y, angle, colour):
        corners = [(x, y)] + [(x - 10 * math.cos(angle + side), y - 10 * math.sin(angle + side))
                              for side in (0.4, -0.4)]
        self._add("polygon", points=" ".join(f"{number(a)},{number(b)}" for a, b in corners),
                  fill=colour)

    def sector(self, centre, radii, angles, fill, stroke=WHITE):
        """A piece of a ring; angles in turns, clockwise from the top."""
        def at(radius, turn):
            return point(centre, radius, turn)
        inner, outer = radii
        begin, end = angles
        far = 1 if end - begin > 0.5 else 0
        parts = [("M", at(inner, begin)), ("L", at(outer, begin)),
                 (f"A{outer} {outer} 0 {far} 1 ", at(outer, end)), ("L", at(inner, end)),
                 (f"A{inner} {inner} 0 {far} 0 ", at(inner, begin))]
        path = "".join(f"{how}{number(x)} {number(y)}" for how, (x, y) in parts) + "Z"
        self._add("path", d=path, fill=fill, stroke=stroke, stroke_width=1.5)

    def svg(self):
        """The file."""
        head = [
            '<?xml version="1.0" encoding="UTF-8"?>',
            "<!-- SPDX-License-Identifier: GPL-2.0 -->",
            "<!-- Made by Documentation/pictures/draw from the constants of the source. -->",
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}"'
            f' height="{self.height}" viewBox="0 0 {self.width} {self.height}"'
            f' font-family="{FONT}">',
            f"<title>{escape(self.title)}</title>",
        ]
        return "\n".join(head + self.shapes + ["</svg>", ""])


def point(centre, radius, turn):
    """Where on a circle; in turns, clockwise from the top."""
    return (centre[0] + radius * math.sin(2 * math.pi * turn),
            centre[1] - radius * math.cos(2 * math.pi * turn))
