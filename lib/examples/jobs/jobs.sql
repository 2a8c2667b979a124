-- SPDX-License-Identifier: MIT OR GPL-2.0
--
-- Jobs that are kept in PostgreSQL and run on time by jobs.c: what to do, when, and whether
-- it is done. A job that is due soon is announced on the channel "jobs" as "ID MICROSECONDS".
-- The others are looked up before their time comes.
CREATE TABLE jobs (
	id	bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
	due	timestamptz NOT NULL CHECK (isfinite(due)),
	payload	text NOT NULL DEFAULT '',
	done	timestamptz,
	worker	text
);
CREATE INDEX jobs_due ON jobs (due) WHERE done IS NULL;

-- What the jobs of the example do: they leave a row here.
CREATE TABLE runs (
	job	bigint NOT NULL,
	at	timestamptz NOT NULL DEFAULT clock_timestamp(),
	worker	text NOT NULL
);

CREATE FUNCTION microseconds(timestamptz) RETURNS bigint LANGUAGE sql STABLE AS
	$$ SELECT (extract(epoch FROM $1) * 1000000)::bigint $$;

CREATE FUNCTION jobs_announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_notify('jobs', NEW.id || ' ' || microseconds(NEW.due));
	RETURN NULL;
END $$;

-- 10 minutes: what jobs.c looks ahead, at least (--window).
CREATE TRIGGER jobs_announce AFTER INSERT OR UPDATE OF due, done ON jobs FOR EACH ROW
	WHEN (NEW.done IS NULL AND NEW.due < now() + interval '10 minutes')
	EXECUTE FUNCTION jobs_announce();
