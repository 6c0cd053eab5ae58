"""SFTP server as a confined tree: links are resolved here, and changes are verified after a lost reply."""

from ringfence.toolkit.storage.sftp.backend import Sftp
from ringfence.toolkit.storage.sftp.opening import open_sftp, sftp_on

__all__ = ["Sftp", "open_sftp", "sftp_on"]
