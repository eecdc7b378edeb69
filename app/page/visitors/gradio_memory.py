"""Removal of the data that Gradio keeps of a session in the server's memory.

Gradio keeps messages until somebody fetches them, and values for 10,000 sessions. It has no calls to drop them, so
this file alone uses its private parts.
"""

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import gradio as gr

MAX_PENDING = 16
"""Events of one session whose messages were not fetched yet. A page has two or three on the way at most."""


def forget_upload(upload_id: str) -> None:
    """Drops the data by which Gradio shows the progress of an upload."""
    from gradio.routes import file_upload_statuses

    file_upload_statuses.stop_tracking(upload_id)
    file_upload_statuses._signals.pop(upload_id, None)


class GradioMemory:
    """The sessions of one Gradio page. Its methods are called in the event loop alone."""

    def __init__(self, blocks: "gr.Blocks") -> None:
        self._blocks = blocks
        self._tasks: set[asyncio.Task[None]] = set()

    def is_full(self, key: str) -> bool:
        """True if that session must fetch its messages before it may send another event."""
        return len(self._blocks._queue.pending_event_ids_session.get(key, ())) >= MAX_PENDING

    def forget(self, key: str) -> None:
        """Drops the values of a session, its messages and its jobs."""
        self._blocks.state_holder.session_data.pop(key, None)
        self._blocks.state_holder.time_last_used.pop(key, None)
        self.drop_events(key)

    def drop_events(self, key: str) -> None:
        """Ends a session's jobs, waiting ones too, and drops the messages that nobody fetched."""
        task = asyncio.get_running_loop().create_task(self._drop_events(key))
        self._tasks.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._tasks.discard)

    async def _drop_events(self, key: str) -> None:
        queue = self._blocks._queue
        await queue.clean_events(session_hash=key)  # from now on its jobs send nothing, and end at their next step
        queue.pending_messages_per_session.pop(key, None)
        queue.pending_event_ids_session.pop(key, None)
