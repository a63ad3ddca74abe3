"""A table at the end of the run: which robots were compared with which engine, which were refused and why."""

from collections import Counter

PROPERTY = "compared"  # a test records (comparison, robot, outcome) under this name


def pytest_terminal_summary(terminalreporter):
    # from the reports, not from a global: with several worker processes only reports reach this one
    rows = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == PROPERTY and getattr(report, "when", "") == "call"
    ]
    # (comparison, robot, outcome): the first words of an outcome, up to a colon, are what is counted
    for comparison in dict.fromkeys(row[0] for row in rows):
        own = sorted(tuple(row[1:]) for row in rows if row[0] == comparison)
        terminalreporter.section(comparison)
        width = max(len(robot) for robot, _ in own)
        for robot, outcome in own:
            terminalreporter.write_line(f"{robot:{width}}  {outcome}")
        counts = Counter(outcome.split(":")[0] for _, outcome in own)
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        terminalreporter.write_line(f"of {len(own)} robots: {shown}")
