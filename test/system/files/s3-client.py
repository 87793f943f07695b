"""Calls a bucket by boto3. The settings are in the environment.

Each line of the input is a scenario with a key, `{"scenario", "id", "secret"}`, and each line of the output its
`{"result"}` or `{"error"}`.
"""

import json
import os
import sys
import urllib.error
import urllib.request

import boto3
from botocore.client import Config
from botocore.exceptions import ClientError

BUCKET = os.environ["S3_BUCKET"]
PART = 5 << 20


def client(retries=0):
    return boto3.client(
        "s3",
        endpoint_url=os.environ["S3_ENDPOINT"],
        region_name=os.environ["S3_REGION"],
        aws_access_key_id=os.environ["S3_ACCESS_KEY"],
        aws_secret_access_key=os.environ["S3_SECRET"],
        config=Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": retries + 1},
            max_pool_connections=16,
        ),
    )


def refusal(call, **arguments):
    """Code and status of the error; "" for a call that succeeds."""
    try:
        call(**arguments)
        return ""
    except ClientError as error:
        return f"{error.response['Error']['Code']} {error.response['ResponseMetadata']['HTTPStatusCode']}"


def first():
    s3 = client()
    s3.put_object(Bucket=BUCKET, Key="greetings/one.txt", Body=b"hello", ContentType="text/plain", Metadata={"by": "boto3"})
    found = s3.get_object(Bucket=BUCKET, Key="greetings/one.txt")
    return {
        "body": found["Body"].read().decode(),
        "type": found["ContentType"],
        "metadata": found["Metadata"],
        "range": s3.get_object(Bucket=BUCKET, Key="greetings/one.txt", Range="bytes=1-2")["Body"].read().decode(),
        "buckets": [each["Name"] for each in s3.list_buckets()["Buckets"]],
    }


def read():
    """The text of the object of `first`, or the refusal."""
    found = {}
    refused = refusal(lambda: found.update(client().get_object(Bucket=BUCKET, Key="greetings/one.txt")))
    return refused or found["Body"].read().decode()


def uploads():
    s3 = client()
    parts = [os.urandom(PART), b"the end"]
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="large")["UploadId"]
    tags = [
        s3.upload_part(Bucket=BUCKET, Key="large", UploadId=upload, PartNumber=number + 1, Body=part)["ETag"]
        for number, part in enumerate(parts)
    ]
    done = [{"ETag": tag, "PartNumber": number + 1} for number, tag in enumerate(tags)]
    s3.complete_multipart_upload(Bucket=BUCKET, Key="large", UploadId=upload, MultipartUpload={"Parts": done})
    same = s3.get_object(Bucket=BUCKET, Key="large")["Body"].read() == b"".join(parts)
    s3.put_object(Bucket=BUCKET, Key="checked", Body=b"sum", ChecksumAlgorithm="SHA256")
    checked = s3.head_object(Bucket=BUCKET, Key="checked", ChecksumMode="ENABLED").get("ChecksumSHA256")
    twice = refusal(s3.put_object, Bucket=BUCKET, Key="checked", Body=b"other", IfNoneMatch="*")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "checked"}, ExpiresIn=60)
    presigned = urllib.request.urlopen(url).read().decode()
    try:
        urllib.request.urlopen(url.split("?")[0])
        unsigned = 200
    except urllib.error.HTTPError as error:
        unsigned = error.code
    s3.delete_object(Bucket=BUCKET, Key="large")
    deleted = refusal(s3.head_object, Bucket=BUCKET, Key="large")
    rules = [{"AllowedMethods": ["GET"], "AllowedOrigins": ["https://shop.example"]}]
    s3.put_bucket_cors(Bucket=BUCKET, CORSConfiguration={"CORSRules": rules})
    cors = s3.get_bucket_cors(Bucket=BUCKET)["CORSRules"][0]["AllowedOrigins"]
    return {"same": same, "checked": checked, "twice": twice, "presigned": presigned, "unsigned": unsigned, "deleted": deleted, "cors": cors}


def wide():
    """An object of 100 MB in 20 parts: whether it is the same, also by ranges over the border of two parts."""
    from concurrent.futures import ThreadPoolExecutor

    s3 = client()
    parts = [os.urandom(PART) for _ in range(20)]
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="wide")["UploadId"]

    def put(number):
        return s3.upload_part(Bucket=BUCKET, Key="wide", UploadId=upload, PartNumber=number + 1, Body=parts[number])

    with ThreadPoolExecutor(4) as pool:
        tags = [each["ETag"] for each in pool.map(put, range(len(parts)))]
    listed = s3.list_parts(Bucket=BUCKET, Key="wide", UploadId=upload)["Parts"]
    done = [{"ETag": tag, "PartNumber": number + 1} for number, tag in enumerate(tags)]
    tag = s3.complete_multipart_upload(Bucket=BUCKET, Key="wide", UploadId=upload, MultipartUpload={"Parts": done})["ETag"]
    body = b"".join(parts)
    border = f"bytes={PART - 3}-{PART + 2}"
    part = s3.get_object(Bucket=BUCKET, Key="wide", Range=border)["Body"].read()
    same = s3.get_object(Bucket=BUCKET, Key="wide")["Body"].read() == body
    aborted = s3.create_multipart_upload(Bucket=BUCKET, Key="aborted")["UploadId"]
    s3.upload_part(Bucket=BUCKET, Key="aborted", UploadId=aborted, PartNumber=1, Body=b"x")
    s3.abort_multipart_upload(Bucket=BUCKET, Key="aborted", UploadId=aborted)
    left = s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    s3.delete_object(Bucket=BUCKET, Key="wide")
    return {
        "parts": len(listed),
        "tag": tag.strip('"').endswith("-20"),
        "range": part == body[PART - 3 : PART + 3],
        "same": same,
        "uploads": len(left),
    }


def checksums():
    """Outcomes of uploads whose parts have checksums that the upload names, or does not name, when it starts."""
    s3 = client()
    outcomes = {}
    for name, settings in {"named": {"ChecksumAlgorithm": "CRC32"}, "unnamed": {}}.items():
        upload = s3.create_multipart_upload(Bucket=BUCKET, Key=name, **settings)["UploadId"]
        part = s3.upload_part(
            Bucket=BUCKET, Key=name, UploadId=upload, PartNumber=1, Body=b"a part", ChecksumAlgorithm="CRC32"
        )
        done = [{"ETag": part["ETag"], "ChecksumCRC32": part["ChecksumCRC32"], "PartNumber": 1}]
        outcomes[name] = refusal(
            s3.complete_multipart_upload, Bucket=BUCKET, Key=name, UploadId=upload, MultipartUpload={"Parts": done}
        )
        if outcomes[name] == "":
            s3.delete_object(Bucket=BUCKET, Key=name)
        else:
            s3.abort_multipart_upload(Bucket=BUCKET, Key=name, UploadId=upload)
    return outcomes


def lacking():
    """Refusals of calls for features that the service does not have."""
    s3 = client()
    rule = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}
    sse = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    topic = {"TopicArn": "arn:aws:sns:us-east-1:1:t", "Events": ["s3:ObjectCreated:*"]}
    copy = {"Status": "Enabled", "Destination": {"Bucket": "arn:aws:s3:::other"}}
    website = {"IndexDocument": {"Suffix": "index.html"}}
    versions = {"VersioningConfiguration": {"Status": "Enabled"}}
    one = {"Key": "encrypted", "Body": b"x"}
    own_key = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": "0" * 32}
    calls = {
        "versions": (s3.put_bucket_versioning, versions),
        "encrypted object": (s3.put_object, {**one, "ServerSideEncryption": "AES256"}),
        "client's key": (s3.put_object, {**one, **own_key}),
        "lifecycle": (s3.put_bucket_lifecycle_configuration, {"LifecycleConfiguration": {"Rules": [rule]}}),
        "encryption": (s3.put_bucket_encryption, {"ServerSideEncryptionConfiguration": {"Rules": [sse]}}),
        "notifications": (
            s3.put_bucket_notification_configuration,
            {"NotificationConfiguration": {"TopicConfigurations": [topic]}},
        ),
        "replication": (
            s3.put_bucket_replication,
            {"ReplicationConfiguration": {"Role": "arn:aws:iam::1:role/r", "Rules": [copy]}},
        ),
        "website": (s3.put_bucket_website, {"WebsiteConfiguration": website}),
        "logging": (s3.put_bucket_logging, {"BucketLoggingStatus": {}}),
    }
    return {name: refusal(call, Bucket=BUCKET, **arguments) for name, (call, arguments) in calls.items()}


def creation():
    """Refusals of the creation of the bucket, which exists, and of another."""
    s3 = client()
    url = s3.generate_presigned_url("create_bucket", Params={"Bucket": BUCKET}, ExpiresIn=60)
    try:
        presigned = urllib.request.urlopen(urllib.request.Request(url, method="PUT")).status
    except urllib.error.HTTPError as error:
        presigned = error.code
    return {
        "creation": refusal(s3.create_bucket, Bucket=BUCKET),
        "presigned": presigned,
        "other bucket": refusal(s3.create_bucket, Bucket="another-bucket"),
    }


def access():
    """What the key may do."""
    s3 = client()
    url = s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "greetings/one.txt"}, ExpiresIn=60)
    try:
        presigned = urllib.request.urlopen(url).status
    except urllib.error.HTTPError as error:
        presigned = error.code
    return {
        "get": refusal(s3.get_object, Bucket=BUCKET, Key="greetings/one.txt"),
        "list": refusal(s3.list_objects_v2, Bucket=BUCKET),
        "buckets": refusal(s3.list_buckets) or [each["Name"] for each in s3.list_buckets()["Buckets"]],
        "presigned": presigned,
        "put": refusal(s3.put_object, Bucket=BUCKET, Key="new", Body=b"x"),
        "delete": refusal(s3.delete_object, Bucket=BUCKET, Key="greetings/one.txt"),
        "upload": refusal(s3.create_multipart_upload, Bucket=BUCKET, Key="new"),
        "other bucket": refusal(s3.create_bucket, Bucket="another-bucket"),
        "bucket's end": refusal(s3.delete_bucket, Bucket=BUCKET),
        "policy": refusal(s3.delete_bucket_cors, Bucket=BUCKET),
    }


def full():
    """Writes until the disk is full."""
    s3 = client()
    body = os.urandom(8 << 20)
    for number in range(1000):
        refused = refusal(s3.put_object, Bucket=BUCKET, Key=f"full/{number:04}", Body=body)
        if refused != "":
            break
    same = s3.get_object(Bucket=BUCKET, Key="full/0000")["Body"].read() == body
    return {"refused": refused, "same": same, "count": number}


def emptied():
    s3 = client(retries=5)
    objects = [{"Key": each["Key"]} for each in s3.list_objects_v2(Bucket=BUCKET, Prefix="full/").get("Contents", [])]
    s3.delete_objects(Bucket=BUCKET, Delete={"Objects": objects, "Quiet": True})
    return {"deleted": len(objects)}


for line in sys.stdin:
    request = json.loads(line)
    os.environ.update({"S3_ACCESS_KEY": request["id"], "S3_SECRET": request["secret"]})
    try:
        answer = {"result": globals()[request["scenario"]]()}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
