"""A notice on the desktop for each approval that waits: python on_the_desktop.py --root ~/project"""

import html
import subprocess
import sys

from waiting import arguments, how, line, tell_of_each


def tell(request):
    # Desktops read the body as markup.
    words = ["notify-send", "--app-name", "Ringfence", "--", "Approval needed"]
    subprocess.run([*words, html.escape(f"{line(request)}\n{how(request)}")], check=True)


if __name__ == "__main__":
    try:
        sys.exit(tell_of_each(tell, *arguments(__doc__)))
    except KeyboardInterrupt:
        sys.exit(0)
