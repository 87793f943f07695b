"""Plugin of pytest for ceph/s3-tests against a server with one bucket and keys of one account.

A test gets this bucket, emptied and private, where it creates its first one. Tests that need another bucket or account,
or that are about the creation of buckets, are skipped, and those that would lock objects of all later tests. The outcomes are written as JSON to the file of S3_OUTCOMES: by test, with
`outcome`, the last line of its `error`, and its `marks`.
"""

import json
import os

import botocore.client
import pytest
import s3tests.functional as suite
from botocore.exceptions import ClientError

BUCKET = os.environ["S3_BUCKET"]
names_given = 0
current_test = ""
marks = {}
outcomes = {}


def empty_bucket():
    s3 = suite.get_client()
    for each in s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []):
        s3.abort_multipart_upload(Bucket=BUCKET, Key=each["Key"], UploadId=each["UploadId"])
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        objects = [{"Key": each["Key"]} for each in page.get("Contents", [])]
        if objects:
            s3.delete_objects(Bucket=BUCKET, Delete={"Objects": objects, "Quiet": True})
    s3.put_bucket_acl(Bucket=BUCKET, ACL="private")
    for remove in (s3.delete_bucket_cors, s3.delete_bucket_policy, s3.delete_bucket_tagging):
        try:
            remove(Bucket=BUCKET)
        except ClientError:
            pass  # The bucket has none, or the server has no such setting.


def setup():
    global names_given
    names_given = 0
    empty_bucket()


def bucket_name():
    global names_given
    names_given += 1
    if names_given > 1:
        pytest.skip("several buckets")
    is_about_missing_bucket = "notexist" in current_test or "nonexist" in current_test
    return "no-such-bucket" if is_about_missing_bucket else BUCKET


def unavailable(reason):
    def skip(*_, **__):
        pytest.skip(reason)

    return skip


def configure():
    read_configuration()
    # The suite knows only whether to verify; botocore then takes the authorities of the system.
    suite.config.default_ssl_verify = os.environ["AWS_CA_BUNDLE"]


read_configuration = suite.configure
suite.configure = configure
suite.setup = setup
suite.teardown = lambda: None
suite.get_new_bucket_name = bucket_name
for name in dir(suite):
    if name.startswith("get_") and name.endswith("client") and any(
        part in name for part in ("alt", "tenant", "iam", "sts", "svc", "cloud")
    ):
        setattr(suite, name, unavailable("another account or API"))

call_api = botocore.client.BaseClient._make_api_call


def without_buckets(client, operation, arguments):
    if operation == "CreateBucket":
        if arguments.keys() - {"Bucket"}:
            pytest.skip("settings of a new bucket")
        if arguments["Bucket"] != BUCKET:
            pytest.skip("several buckets")
        return {"ResponseMetadata": {"HTTPStatusCode": 200, "HTTPHeaders": {}}}
    if operation == "DeleteBucket" and arguments["Bucket"] == BUCKET:
        pytest.skip("deletion of the bucket")
    return call_api(client, operation, arguments)


botocore.client.BaseClient._make_api_call = without_buckets


def pytest_collection_modifyitems(items):
    for item in items:
        marks[item.nodeid] = sorted({each.name for each in item.iter_markers()})
        if "bucket_create" in item.name:
            item.add_marker(pytest.mark.skip(reason="creation of buckets"))
        if "object_lock" in item.name:
            item.add_marker(pytest.mark.skip(reason="object lock"))


def pytest_runtest_setup(item):
    global current_test
    current_test = item.name


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
        crash = getattr(getattr(report.longrepr, "reprcrash", None), "message", text)
        outcomes[report.nodeid] = {
            "outcome": report.outcome,
            "error": crash.strip().splitlines()[0][:300] if crash.strip() else "",
            "marks": marks.get(report.nodeid, []),
        }


def pytest_sessionfinish():
    with open(os.environ["S3_OUTCOMES"], "w") as file:
        json.dump(outcomes, file)
