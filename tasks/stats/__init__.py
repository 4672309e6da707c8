"""The numbers of a report: measures, intervals, paired tests, gates. Values in, values out."""
