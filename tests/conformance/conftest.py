"""A table at the end of the run: which robots were compared with which engine, which were refused and why."""

PROPERTY = "compared"  # a test records (robot, outcome) under this name


def pytest_terminal_summary(terminalreporter):
    # from the reports, not from a global: with several worker processes only reports reach this one
    rows = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == PROPERTY and getattr(report, "when", "") == "call"
    ]
    if not rows:
        return
    terminalreporter.section("robots compared with Pinocchio (largest relative differences)")
    width = max(len(robot) for robot, _ in rows)
    for robot, outcome in sorted(map(tuple, rows)):
        terminalreporter.write_line(f"{robot:{width}}  {outcome}")
    counts = {}
    for _, outcome in rows:
        kind = outcome.split(":")[0]
        counts[kind] = counts.get(kind, 0) + 1
    terminalreporter.write_line(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
