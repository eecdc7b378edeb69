"""A camera that speaks RTSP, by GStreamer: a ball over noise, H.264 at 25 frames a second, a key frame each second.

    /usr/bin/python3 rtsp_server.py PORT [UDP]

It runs under the system's Python, where Debian puts GStreamer's bindings (packages gir1.2-gst-rtsp-server-1.0,
python3-gi, gstreamer1.0-plugins-good, -bad and -ugly), and prints a line when it listens. In the middle of the stream,
SIGUSR1 changes the size of the picture from 640x360 to 480x270 and back, like a camera's slider.
"""

import signal
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

SIZES = [(640, 360), (480, 270)]
PIPELINE = (
    "( videotestsrc is-live=true pattern=ball animation-mode=frames ! capsfilter name=size ! x264enc tune=zerolatency "
    "threads=1 speed-preset=ultrafast bitrate=800 key-int-max=25 ! rtph264pay name=pay0 pt=96 config-interval=-1 )"
)


def main(port: str, transport: str = "") -> None:
    Gst.init(None)
    filters: list[Gst.Element] = []

    def caps() -> Gst.Caps:
        width, height = SIZES[0]
        return Gst.Caps.from_string(f"video/x-raw,width={width},height={height},framerate=25/1")

    def configure(_: GstRtspServer.RTSPMediaFactory, media: GstRtspServer.RTSPMedia) -> None:
        filters[:] = [media.get_element().get_by_name("size")]
        filters[0].set_property("caps", caps())

    def change_size() -> bool:
        SIZES.reverse()
        for element in filters:
            element.set_property("caps", caps())
        return True

    factory = GstRtspServer.RTSPMediaFactory()
    factory.set_launch(PIPELINE)
    factory.set_shared(True)
    if transport:
        factory.set_protocols(getattr(GstRtsp.RTSPLowerTrans, transport))
    factory.connect("media-configure", configure)
    server = GstRtspServer.RTSPServer(address="127.0.0.1", service=port)
    server.get_mount_points().add_factory("/street", factory)
    if not server.attach(None):
        sys.exit(f"port {port} is taken")
    GLib.unix_signal_add(GLib.PRIORITY_DEFAULT, signal.SIGUSR1, change_size)
    print("listening", flush=True)
    GLib.MainLoop().run()


if __name__ == "__main__":
    main(*sys.argv[1:])
