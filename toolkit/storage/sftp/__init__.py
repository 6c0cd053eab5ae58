"""SFTP server as a confined tree: links are resolved here, and changes are verified after a lost reply."""

from ringfence.toolkit.storage.sftp.backend import STATE, Sftp
from ringfence.toolkit.storage.sftp.opening import open_sftp, sftp_on
from ringfence.toolkit.storage.sftp.view import MAX_LINKS

__all__ = ["MAX_LINKS", "STATE", "Sftp", "open_sftp", "sftp_on"]
