"""Names that commands never see: the secrets of a home directory and of the machine."""

from __future__ import annotations

import os
import pwd

# Below every home directory that is shown.
HOME_SECRETS = (
    *(".local/state/ringfence", ".cache/ringfence"),
    *(".ssh", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub", ".config/glab-cli"),
    *(".gnupg", ".pki", ".password-store", ".local/share/keyrings", ".local/share/kwalletd"),
    *(".netrc", ".authinfo", ".authinfo.gpg", ".git-credentials", ".config/git/credentials"),
    *(".docker", ".config/containers/auth.json", ".kube", ".config/helm/registry", ".minikube"),
    *(".npmrc", ".yarnrc", ".yarnrc.yml", ".config/yarn", ".pypirc", ".config/pip", ".pip", ".condarc"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".bundle/config"),
    *(".config/composer/auth.json", ".composer/auth.json", ".m2/settings.xml", ".m2/settings-security.xml"),
    *(
        ".gradle/gradle.properties",
        ".nuget/NuGet",
        ".config/NuGet",
        ".hex",
        ".config/hf",
        ".cache/huggingface/token",
    ),
    *(
        ".pgpass",
        ".my.cnf",
        ".mylogin.cnf",
        ".pg_service.conf",
        ".dbshell",
        ".config/rclone",
        ".s3cfg",
        ".boto",
    ),
    *(".terraform.d", ".terraformrc", ".vault-token", ".config/op", ".config/sops", ".config/age"),
    *(".config/doctl", ".config/linode-cli", ".oci", ".bluemix", ".fly", ".config/heroku", ".config/ngrok"),
    *(".config/ngrok2", ".ngrok2", ".config/vercel", ".config/netlify", ".wrangler", ".config/.wrangler"),
    *(
        ".claude",
        ".claude.json",
        ".codex",
        ".gemini",
        ".config/anthropic",
        ".config/openai",
        ".config/github-copilot",
    ),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *(
        ".config/Code",
        ".config/Cursor",
        ".config/Slack",
        ".config/Signal",
        ".config/1Password",
        ".config/Bitwarden",
    ),
    *(".Xauthority", ".ICEauthority", ".config/pulse", ".bash_history", ".zsh_history", ".python_history"),
    *(".node_repl_history", ".psql_history", ".mysql_history", ".sqlite_history", ".lesshst", ".viminfo"),
)
# Readable for the owner of the machine, so hidden from a command of root.
MACHINE_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *(
        "/etc/ssl/private",
        "/etc/pki/tls/private",
        "/etc/krb5.keytab",
        "/etc/security/opasswd",
        "/etc/wireguard",
    ),
    *("/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key"),
    *("/etc/NetworkManager/system-connections", "/etc/netplan", "/etc/kubernetes", "/etc/rancher"),
    *("/var/lib/docker", "/var/lib/containerd", "/var/lib/kubelet", "/var/spool/cron", "/var/backups"),
    *("/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf", "/sys/fs/pstore", "/sys/firmware", "/boot"),
)


def own_homes() -> tuple[str, ...]:
    """Return the real paths of the caller's home directories that exist: of the accounts, and of $HOME."""
    found = []
    try:
        found.append(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        pass
    found.append(os.environ.get("HOME", ""))
    real = (os.path.realpath(home) for home in found if home.startswith("/"))
    return tuple(dict.fromkeys(home for home in real if home != "/" and os.path.isdir(home)))


def foreign_homes() -> tuple[str, ...]:
    """Return the homes of others, which a caller that is root could read."""
    if os.getuid() != 0:
        return ()
    own = own_homes()
    places = ("/root", *(entry.pw_dir for entry in pwd.getpwall() if 1000 <= entry.pw_uid < 60000))
    found = (os.path.realpath(home) for home in places if home.startswith(("/home/", "/root", "/Users/")))
    return tuple(dict.fromkeys(home for home in found if home not in own and os.path.isdir(home)))
