"""The section of docs/studies/reliability on the page's hour, from docs/studies/reliability/page-soak.json."""

from typing import Any

from studies.harness.document import table, wrap

ROWS = {
    "resident memory, MB": "rss_mb",
    "threads": "threads",
    "open files and sockets": "handles",
    "visitors' files, kB": "disk_kb",
    "entries in the temp folder": "entries",
}


def page_section(record: dict[str, Any]) -> str:
    """Who came, and what the server held."""
    passing, jobs, browser = record["passing"], record["jobs"], record["browser"]
    answered = ", ".join(str(one["answered"]) for one in record["staying"])
    early = sum("left_early" in one for one in record["staying"])
    words = wrap(f"""
`python -m studies.faults.page_soak`: a server of its own with `{record["model"]}` on two cores (commit {record["commit"]}), for
{record["seconds"] / 60:.0f} minutes. A Chromium with a camera stayed all the time ({browser["shown"]} pictures), beside it
three visitors at up to 2, 5 and 15 pictures a second ({answered} answers; {early} of them did not come back when the server had
closed its idle connection); {passing["came"]} others came one after the other for five pictures ({passing["refused"]} refused);
{jobs["done"]} file jobs were waited for and {jobs["stopped"]} stopped half way ({jobs["failed"]} failed). SIGTERM then ended
the server with exit code {record["exit_code_after_sigterm"]}, and {len(record["left_in_the_temporary_folder"])} files were
left. The two cores had other work too, so the rates say nothing.
""")
    held = table(
        ("at most, from the sixth minute on", "first third", "second third", "last third"),
        ((name, *map(str, record["flat"][key])) for name, key in ROWS.items()),
    )
    disk = wrap("""
The visitors of the file jobs never said that they left, as a machine that is switched off would not: the files of 16 such
visitors are kept, then those of the one who was away longest go.
""")
    return "\n\n".join((words, held, disk))
