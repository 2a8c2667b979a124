# See tools/mutants/run.
commas in other places; timerwheel/wheels; s/digits % 3 == 0/digits % 4 == 0/
