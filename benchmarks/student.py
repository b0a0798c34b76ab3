"""A student without a browser: the websocket of one tab, speaking Streamlit's own messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Self

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from benchmarks.server import HOST

Event = dict[str, Any]
TRIGGER = "$$STREAMLIT_INTERNAL_KEY_{}__events"  # Streamlit's name for the triggers of a component


@dataclass(frozen=True)
class Answer:
    """One reply: when its wanted message arrived, how many bytes came in all, and what it says."""

    seconds: float
    size: int
    board: Event


@dataclass
class Tab:
    """What a browser's tab knows of its page, gathered from the messages that it was sent."""

    socket: ClientConnection
    page: str
    query: str
    page_hash: str = ""
    fragment: str = ""
    component: str = ""
    slider: str = ""
    frame: Event = field(default_factory=dict)
    board: Event = field(default_factory=dict)
    widgets: dict[str, WidgetState] = field(default_factory=dict)
    cached: list[str] = field(default_factory=list)
    sent: int = 0

    @classmethod
    async def open(cls, port: int, page: str, query: str = "lang=en") -> Self:
        """Connect, ask for a page, and read all of it."""
        socket = await connect(
            f"ws://{HOST}:{port}/_stcore/stream", subprotocols=[Subprotocol("streamlit")], max_size=None,
            ping_interval=None, open_timeout=60,
        )
        tab = cls(socket, page, query)
        await tab._rerun([])
        await tab._read(lambda: True)
        return tab

    async def close(self) -> None:
        await self.socket.close()

    async def send(self, event: Event) -> Answer:
        """Report an event of the board; the answer is timed at the board's message with its number."""
        self.sent += 1
        event = event | {"seq": self.sent}
        trigger = WidgetState(id=TRIGGER.format(self.component),
                              json_trigger_value=json.dumps([{"event": "event", "value": event}]))
        start = perf_counter()
        await self._rerun([trigger], self.fragment)
        arrived, size = await self._read(lambda: int(self.board.get("seq", 0)) >= event["seq"])
        return Answer(arrived - start, size, self.board)

    async def slide(self, value: float) -> Answer:
        """Move the naive page's slider; the answer is timed at the end of the script."""
        state = WidgetState(id=self.slider)
        state.double_array_value.data.append(value)
        self.widgets[self.slider] = state
        start = perf_counter()
        await self._rerun([])
        arrived, size = await self._read(lambda: False)
        return Answer(arrived - start, size, {})

    async def _rerun(self, triggers: list[WidgetState], fragment: str = "") -> None:
        message = BackMsg()
        request = message.rerun_script
        request.query_string = self.query
        request.widget_states.widgets.extend([*self.widgets.values(), *triggers])
        request.page_script_hash, request.fragment_id = self.page_hash, fragment
        request.page_name = "" if self.page_hash else self.page
        request.cached_message_hashes.extend(self.cached)
        context = request.context_info
        context.timezone, context.locale, context.color_scheme = "UTC", "en-US", "light"
        context.url = f"http://{HOST}/{self.page}"
        await self.socket.send(message.SerializeToString())

    async def _read(self, is_wanted: Callable[[], bool]) -> tuple[float, int]:
        """Read to the end of the script: when the wanted message, or else the last, arrived; all bytes."""
        wanted, size = None, 0
        while True:
            data = await self.socket.recv(decode=False)
            now = perf_counter()
            size += len(data)
            message = ForwardMsg.FromString(data)
            kind = message.WhichOneof("type")
            if kind == "script_finished":
                return (now if wanted is None else wanted), size
            if kind == "new_session" and not self.page_hash:
                self.page_hash = message.new_session.page_script_hash
            elif kind == "navigation":
                self.page_hash = message.navigation.page_script_hash
            elif kind == "delta":
                self._take(message)
                if wanted is None and is_wanted():
                    wanted = now

    def _take(self, message: ForwardMsg) -> None:
        if message.metadata.cacheable and message.hash not in self.cached:
            self.cached.append(message.hash)
        element = message.delta.new_element
        match element.WhichOneof("type"):
            case "bidi_component":
                component = element.bidi_component
                if component.id.endswith("-board"):
                    self.component, self.fragment = component.id, message.delta.fragment_id
                    self.board = json.loads(component.json or component.mixed.json)
                elif component.id.endswith("-frame"):
                    self.frame = json.loads(component.json or component.mixed.json)
            case "selectbox":
                box = element.selectbox
                self.widgets[box.id] = WidgetState(id=box.id, string_value=box.options[box.default])
            case "slider":
                self.slider = element.slider.id
            case "exception":
                raise RuntimeError(f"the page {self.page} shows an exception: {element.exception.message}")
