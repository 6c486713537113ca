"""Create the bucket of compose.yaml unless it exists, once its store answers."""

import boto3
from botocore.config import Config

BUCKET = "memory"

client = boto3.client("s3", config=Config(retries={"mode": "standard", "total_max_attempts": 10}))
if BUCKET not in {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}:
    client.create_bucket(Bucket=BUCKET)
