"""Calls a bucket by boto3. Arguments: the name of a scenario. The settings are in the environment; prints JSON."""

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


def keys():
    from concurrent.futures import ThreadPoolExecutor

    s3 = client()
    names = [f"many/{number:04}" for number in range(1100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: s3.put_object(Bucket=BUCKET, Key=name, Body=name.encode()), names))
    pages = list(s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="many/"))
    listed = [each["Key"] for page in pages for each in page.get("Contents", [])]
    for start in range(0, len(names), 1000):
        objects = [{"Key": name} for name in names[start : start + 1000]]
        s3.delete_objects(Bucket=BUCKET, Delete={"Objects": objects, "Quiet": True})
    left = s3.list_objects_v2(Bucket=BUCKET, Prefix="many/")["KeyCount"]
    return {"pages": len(pages), "same": listed == names, "left": left}


def uploads():
    s3 = client()
    parts = [os.urandom(PART), os.urandom(PART), b"the end"]
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
        "buckets": refusal(s3.list_buckets),
        "presigned": presigned,
        "put": refusal(s3.put_object, Bucket=BUCKET, Key="new", Body=b"x"),
        "delete": refusal(s3.delete_object, Bucket=BUCKET, Key="greetings/one.txt"),
        "upload": refusal(s3.create_multipart_upload, Bucket=BUCKET, Key="new"),
        "other bucket": refusal(s3.create_bucket, Bucket="another-bucket"),
        "bucket's end": refusal(s3.delete_bucket, Bucket=BUCKET),
        "policy": refusal(s3.delete_bucket_cors, Bucket=BUCKET),
    }


def stream():
    """Writes objects until the input ends; prints each name that is acknowledged."""
    import threading

    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    s3 = client()
    number = 0
    while not ended.is_set():
        name = f"stream/{number:06}"
        body = name.encode() * 5000
        try:
            s3.put_object(Bucket=BUCKET, Key=name, Body=body)
            print(name, flush=True)
            number += 1
        except Exception as error:  # Until the server runs again, the same object is written.
            print(f"# {type(error).__name__}", flush=True)
    return None


def streamed():
    """Names of the stream whose objects are complete."""
    s3 = client(retries=5)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="stream/")
    names = [each["Key"] for page in pages for each in page.get("Contents", [])]
    return [name for name in names if s3.get_object(Bucket=BUCKET, Key=name)["Body"].read() == name.encode() * 5000]


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


result = globals()[sys.argv[1]]()
if result is not None:
    print(json.dumps(result))
