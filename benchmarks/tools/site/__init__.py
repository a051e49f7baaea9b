"""Documentation as a site (`make docs`): pages are laid out in a build folder, and rendered there.

Nothing is written into the source tree. The build adds what the pages on disk lack: a reference of the commands and of
the library, made from the code, and figures, made from current answers.
"""
