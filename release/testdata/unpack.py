"""Unpacks the layers of the image for this machine from an OCI archive, and checks digests and configuration.

usage: unpack.py ARCHIVE FOLDER
"""

import hashlib
import io
import json
import platform
import sys
import tarfile

archive = tarfile.open(sys.argv[1])


def blob(descriptor):
    data = archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/")).read()
    assert descriptor["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()
    assert descriptor["size"] == len(data)
    return data


machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
index = json.load(archive.extractfile("index.json"))
manifest = json.loads(next(blob(m) for m in index["manifests"] if m["platform"]["architecture"] == machine))
config = json.loads(blob(manifest["config"]))
assert config["architecture"] == machine and config["config"]["Entrypoint"] == ["/usr/bin/dmir"]
assert config["config"]["User"] == "65532:65532", "the program must not run as root"
for layer in manifest["layers"]:
    tarfile.open(fileobj=io.BytesIO(blob(layer))).extractall(sys.argv[2])
