"""The main job: the loop over trials, its final round, its settings, what it is asked for and how it tells of progress.

It imports ``search`` and the rooms below it.
"""
