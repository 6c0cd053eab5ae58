"""A mail for each approval that waits, by sendmail: python by_mail.py ada@example.org --root ~/project"""

import subprocess
import sys
from email.message import EmailMessage

from waiting import arguments, how, line, tell_of_each


def mail(request, to):
    message = EmailMessage()
    message["To"] = to
    message["Subject"] = f"Approval needed: {line(request)}"
    message["Auto-Submitted"] = "auto-generated"
    # What a preview shows may be secret: it is not sent.
    message.set_content(f"{line(request)}\n\nsession: {request['session']}\n\n  {how(request)}\n")
    return message


if __name__ == "__main__":
    own, options = arguments(__doc__, "to")

    def tell(request):
        # -i: a line with a lone dot ends nothing; -t: to whom, the message says.
        subprocess.run(["sendmail", "-i", "-t"], input=bytes(mail(request, own.to)), check=True)

    try:
        sys.exit(tell_of_each(tell, own, options))
    except KeyboardInterrupt:
        sys.exit(0)
