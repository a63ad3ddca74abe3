"""modelDescription.xml of FMI 2.0 and 3.0, and buildDescription.xml of FMI 3.0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from linkwise.core.foreign import ascii_line
from linkwise.systems.fmu_model import FmuModel
from linkwise.systems.variables import BASE_UNITS, Variable
from linkwise.version import __version__

Attributes = dict[str, str]


def model_description(model: FmuModel, version: str, token: str, files: Sequence[str]) -> str:
    """The text of modelDescription.xml.

    Args:
        model: the model.
        version: "2.0" or "3.0".
        token: GUID or instantiation token.
        files: names of the C files that are compiled.
    """
    second = version == "2.0"
    root = ET.Element(
        "fmiModelDescription",
        {
            "fmiVersion": version,
            "modelName": model.identifier,
            "guid" if second else "instantiationToken": token,
            "description": ascii_line(model.summary),
            "generationTool": f"Linkwise {__version__}",
            "variableNamingConvention": "structured",
            **({"numberOfEventIndicators": "0"} if second else {}),
        },
    )
    _interfaces(root, model, second, files)
    units = ET.SubElement(root, "UnitDefinitions")
    used = {each.unit for each in model.variables}
    for name, powers in BASE_UNITS.items():
        if name in used:
            unit = ET.SubElement(units, "Unit", {"name": name})
            ET.SubElement(unit, "BaseUnit", {base: str(power) for base, power in powers.items()})
    categories = ET.SubElement(root, "LogCategories")
    ET.SubElement(categories, "Category", {"name": "logStatusError", "description": "errors"})
    ET.SubElement(categories, "Category", {"name": "logStatusWarning", "description": "warnings"})
    ET.SubElement(
        root, "DefaultExperiment", {"startTime": "0.0", "stopTime": "1.0", "stepSize": repr(model.period)}
    )
    variables = ET.SubElement(root, "ModelVariables")
    for each in model.variables:
        (_variable2 if second else _variable3)(variables, each)
    _structure(root, model, second)
    return _text(root)


def build_description(model: FmuModel, files: Iterable[str]) -> str:
    """The text of sources/buildDescription.xml of FMI 3.0."""
    root = ET.Element("fmiBuildDescription", {"fmiVersion": "3.0"})
    build = ET.SubElement(root, "BuildConfiguration", {"modelIdentifier": model.identifier})
    source = ET.SubElement(build, "SourceFileSet", {"language": "C99"})
    for name in files:
        ET.SubElement(source, "SourceFile", {"name": name})
    ET.SubElement(build, "Library", {"name": "m", "external": "true"})
    return _text(root)


def _interfaces(root: ET.Element, model: FmuModel, second: bool, files: Iterable[str]) -> None:
    """What the FMU can do."""
    state = "FMUstate" if second else "FMUState"
    common: Attributes = {
        "modelIdentifier": model.identifier,
        f"canGetAndSet{state}": "true",
        f"canSerialize{state}": "true",
    }
    if model.exchange:
        common["providesDirectionalDerivative" if second else "providesDirectionalDerivatives"] = "true"
    found = [ET.SubElement(root, "ModelExchange", common)] if model.exchange else []
    more: Attributes = {"canHandleVariableCommunicationStepSize": "true"}
    if not second and model.sampled:
        more["fixedInternalStepSize"] = repr(model.period)
    found.append(ET.SubElement(root, "CoSimulation", common | more))
    if second:
        for each in found:
            listed = ET.SubElement(each, "SourceFiles")
            for name in files:
                ET.SubElement(listed, "File", {"name": name})


def _role(each: Variable) -> Attributes:
    if each.causality == "tunable":
        return {"causality": "parameter", "variability": "tunable", "initial": "exact"}
    found = {"causality": each.causality}
    if each.causality == "parameter":
        found["variability"] = "fixed"
    else:
        found["variability"] = "continuous"
    if each.causality == "output":
        found["initial"] = "calculated" if each.calculated else "exact"
    elif each.causality == "parameter":
        found["initial"] = "exact"
    return found


def _value(each: Variable) -> Attributes:
    found: Attributes = {} if each.unit is None else {"unit": each.unit}
    if each.start is not None:
        found["start"] = repr(each.start)
    return found


def _variable2(parent: ET.Element, each: Variable) -> None:
    described = {"name": each.name, "valueReference": str(each.reference), "description": each.description}
    scalar = ET.SubElement(parent, "ScalarVariable", described | _role(each))
    value = _value(each)
    if each.derivative is not None:
        value["derivative"] = str(each.derivative + 1)
    ET.SubElement(scalar, "Real", value)


def _variable3(parent: ET.Element, each: Variable) -> None:
    described = {"name": each.name, "valueReference": str(each.reference), "description": each.description}
    if each.derivative is not None:
        described["derivative"] = str(each.derivative)
    ET.SubElement(parent, "Float64", described | _role(each) | _value(each))


def _structure(root: ET.Element, model: FmuModel, second: bool) -> None:
    """Outputs, derivatives and initial unknowns with what they depend on. FMI 2.0 counts variables from 1; value
    references count them from 0 in the same order."""
    structure = ET.SubElement(root, "ModelStructure")
    inputs = [each.reference for each in model.variables if each.causality == "input"]
    states = [each.reference for each in model.states]
    starts = [
        each.reference for each in model.variables if each.causality == "output" and each.start is not None
    ]

    def depends(each: Variable) -> list[int]:
        if each.calculated:
            return sorted([*inputs, *states])
        return [each.reference] if each.reference in states else []

    outputs = [each for each in model.variables if each.causality == "output"]
    derivatives = [each for each in model.variables if each.derivative is not None]
    unknowns = [each for each in outputs if each.calculated]
    rows = {
        ("Outputs", "Output"): [(each, depends(each)) for each in outputs],
        ("Derivatives", "ContinuousStateDerivative"): [(each, depends(each)) for each in derivatives],
        ("InitialUnknowns", "InitialUnknown"): [(each, sorted([*inputs, *starts])) for each in unknowns],
    }
    for (group, name), listed in rows.items():
        if not listed:
            continue
        parent = ET.SubElement(structure, group) if second else structure
        for each, references in listed:
            shift = 1 if second else 0
            key, tag = ("index", "Unknown") if second else ("valueReference", name)
            attributes = {key: str(each.reference + shift)}
            attributes["dependencies"] = " ".join(str(reference + shift) for reference in references)
            ET.SubElement(parent, tag, attributes)


def _text(root: ET.Element) -> str:
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
