# See tools/mutants/run.
bold with NO_COLOR; timerwheel/host:NO_COLOR; s/return !no || !\*no;/return true;/
