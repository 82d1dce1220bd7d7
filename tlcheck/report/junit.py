"""JUnit XML: a test case for each case and target, which fails where an error is told."""

from __future__ import annotations

from xml.etree import ElementTree

from tlcheck.report.notices import ERROR, HAZARD, Document, Notice, Subject


def render(document: Document) -> str:
    """The whole file, indented, with a newline at its end."""
    failures = [subject for subject in document.subjects if _errors(subject)]
    skipped = [subject for subject in document.subjects if subject.skipped and subject not in failures]
    suite = ElementTree.Element("testsuite")
    suite.set("name", f"tlcheck {document.command}")
    suite.set("tests", str(len(document.subjects)))
    suite.set("failures", str(len(failures)))
    suite.set("errors", "0")
    suite.set("skipped", str(len(skipped)))
    suite.set("time", f"{sum(subject.seconds for subject in document.subjects):.3f}")
    for subject in document.subjects:
        _case(suite, subject)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, subject: Subject) -> None:
    name = " ".join(part for part in (subject.name or subject.file, subject.target) if part)
    attributes = {"classname": subject.file, "name": _clean(name), "time": f"{subject.seconds:.3f}"}
    case = ElementTree.SubElement(suite, "testcase", attributes)
    errors = _errors(subject)
    if errors:
        failure = ElementTree.SubElement(case, "failure", {"type": errors[0].id, "message": _clean(errors[0].message)})
        failure.text = _clean("\n\n".join(_words(notice) for notice in errors))
    elif subject.skipped:
        ElementTree.SubElement(case, "skipped", {"message": _clean(subject.skipped)})
    lines = [_words(notice) for notice in subject.notices if notice not in errors]
    lines += [f"on the device: {subject.evidence}"] if subject.evidence else []
    if lines:
        ElementTree.SubElement(case, "system-out").text = _clean("\n".join(lines))


def _errors(subject: Subject) -> list[Notice]:
    return [notice for notice in subject.notices if notice.level in (ERROR, HAZARD) and not notice.accepted]


def _words(notice: Notice) -> str:
    accepted = f" (accepted: {notice.accepted})" if notice.accepted else ""
    detail = f"\n{notice.detail}" if notice.detail else ""
    return f"{notice.file}:{notice.line}: {notice.id}: {notice.message}{accepted}{detail}"


def _clean(text: str) -> str:
    """Drop what XML cannot hold: control characters from a compiler's output, lone surrogates."""
    return "".join(c for c in text if c in "\t\n" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff")
