"""Campaigns: many problems of one kernel, spread over the devices of one machine or of many.

It imports ``sweep`` and the rooms below it.
"""
