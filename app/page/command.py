"""`steadyseg demo`: serves the page, or measures what it reaches."""

from app.page.flags import PageOptions


def run_demo(options: PageOptions) -> int:
    """The exit code; Ctrl-C ends serving."""
    if options.measure is not None:
        from app.page.measure import measure_page

        return measure_page(options)
    from app.page.server import serve

    return serve(options)
