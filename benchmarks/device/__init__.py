"""`make device-check`: what a GPU does with the engine; run by somebody who has one."""
