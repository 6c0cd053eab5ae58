"""SFTP server as a confined tree: links resolved here, changes looked at again when a reply was lost."""

from toolkit.sftp.backend import STATE, Sftp
from toolkit.sftp.looking import MAX_LINKS
from toolkit.sftp.opening import open_sftp, sftp_on

__all__ = ["MAX_LINKS", "STATE", "Sftp", "open_sftp", "sftp_on"]
