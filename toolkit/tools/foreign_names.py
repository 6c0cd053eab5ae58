"""Names of other products' file tools, with our tool that does what each of them means.

Pure. A model that knows another product calls its tools; the error then names the right one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable

# Written without case, `_` and `-`: `ReadFile`, `read_file` and `read-file` are one name.
_WORDS = {
    "read_files": "readmultiplefiles readmanyfiles viewfiles openfiles",
    "read_file": "read readtextfile viewfile view cat open openfile"
    " getfilecontents getfile fetchfile showfile readmediafile readimage viewimage head tail",
    "create_file": "write writefile writetofile savefile save newfile touch overwritefile put",
    "edit_file": "edit multiedit strreplace strreplaceeditor strreplacebasededittool replaceinfile replace"
    " searchreplace applydiff applypatch patch editblock updatefile modifyfile replacetext changefile",
    "insert_at_line": "insert insertcontent insertline insertlines inserttext append appendfile appendtofile",
    "move_file": "mv move rename renamefile movepath",
    "copy_file": "cp copy duplicatefile",
    "delete_file": "rm unlink removefile deletepath",
    "delete": "rmdir remove removedirectory deletedirectory deletefolder removefolder rmtree",
    "create_directory": "mkdir makedirectory createfolder newfolder makedir createdir",
    "list_directory": "ls list listfiles listdir dir readdir listdirectorywithsizes readfolder listfolder",
    "directory_tree": "tree listfilesrecursive listrecursive gettree",
    "search_files": "glob find findfiles findfile filesearch searchfilenames searchbyname",
    "search_text": "grep rg ripgrep grepsearch searchfilecontent search searchcontent contentsearch"
    " codesearch codebasesearch searchcode searchinfiles findtext",
    "get_file_info": "stat fileinfo getinfo getmetadata filemetadata",
    "run_command": "bash shell sh exec execute executecommand runterminalcmd runshellcommand"
    " runcommand terminal runinterminal execcommand shellcommand",
    "get_project_root": "pwd cwd getcwd listalloweddirectories projectroot getworkingdirectory",
}
_OURS = {word: tool for tool, words in _WORDS.items() for word in words.split()}


def hint_for(name: str, tools: Iterable[str], shown: Callable[[str], str] = str) -> str:
    """Return which of `tools` an unknown name means, else which ones there are, each as `shown` writes it."""
    every = list(tools)
    meant = _OURS.get(re.sub(r"[\W_]", "", name).lower()[:80])
    if meant is not None and meant in every:
        more = " (with allow_overwrite: true to replace)" if meant == "create_file" else ""
        return f"use {shown(meant)}{more}"
    near = difflib.get_close_matches(name[:80], every, 1)
    if near:
        return f"did you mean '{shown(near[0])}'?"
    return f"the tools are {', '.join(map(shown, every))}"
