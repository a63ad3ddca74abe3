"""Reports: one HTML file with text, tables and plots that works offline, and its figures as SVG files."""

from linkwise.arguments.explained import explain
from linkwise.geometry.posture import bent_position
from linkwise.report import sections
from linkwise.report.heatmap import heat_map
from linkwise.report.identification import identification_report
from linkwise.report.page import Figure, Fold, Grid, HtmlTable, Raw, Report, Section, Text, Warned
from linkwise.report.picture import robot_picture
from linkwise.report.plot import Plot, motion_plot, robot_html, simulation_plot, torque_plot, usage_plot
from linkwise.report.plots import Bar, Line, bar_chart, cell_map, legend, line_plot, scatter_plot
from linkwise.report.svg import COLOURS

__all__ = [
    "COLOURS",
    "Bar",
    "Figure",
    "Fold",
    "Grid",
    "HtmlTable",
    "Line",
    "Plot",
    "Raw",
    "Report",
    "Section",
    "Text",
    "Warned",
    "bar_chart",
    "bent_position",
    "cell_map",
    "heat_map",
    "identification_report",
    "legend",
    "line_plot",
    "motion_plot",
    "robot_html",
    "robot_picture",
    "scatter_plot",
    "sections",
    "simulation_plot",
    "torque_plot",
    "usage_plot",
]

explain(globals(), "report")
