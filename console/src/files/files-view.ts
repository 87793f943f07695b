import type { NewFilesService } from "@holdfast/sdk/requests.ts";
import type { Catalog, FilesAccess, FilesConnection, FilesKey } from "@holdfast/sdk/responses.ts";
import { listOf } from "../services/create-view.ts";
import type { Snippet } from "../services/engines/console-engine.ts";

/** The input of the form for a files service. */
export interface NewFilesInput {
  readonly name: string;
  readonly plan: string;
  readonly storageGb: string;
  readonly cidrs: string;
}

/** A form for 10 GB on the smallest plan, for the clients of the catalog's default. */
export function filesDefaults({ plans, limits, default_allowed_cidrs: cidrs }: Catalog): NewFilesInput {
  return {
    name: "",
    plan: plans[0]?.plan_name ?? "",
    storageGb: String(Math.max(10, limits.storage_size_gb_min)),
    cidrs: cidrs.join(", "),
  };
}

export function newFilesOf({ name, plan, storageGb, cidrs }: NewFilesInput): NewFilesService {
  return { name, plan_name: plan, storage_size_gb: Number(storageGb), allowed_cidrs: listOf(cidrs) };
}

export const accesses: readonly (readonly [FilesAccess, string])[] = [
  ["readwrite", "Read and write"],
  ["readonly", "Only read"],
];

export function accessText(access: FilesAccess): string {
  return access === "readonly" ? "only reads" : "reads and writes";
}

/** A new key as the variables that S3 clients read. */
export function keyText({ access_key_id: id, secret_access_key: secret }: FilesKey): string {
  return `AWS_ACCESS_KEY_ID=${id}\nAWS_SECRET_ACCESS_KEY=${secret ?? ""}`;
}

/** Clients of the bucket, without a key; ca.pem is the certificate authority. */
export function filesSnippets({ endpoint, bucket, region }: FilesConnection): readonly Snippet[] {
  return [
    {
      title: "AWS CLI",
      text: [
        `export AWS_ENDPOINT_URL=${endpoint}`,
        `export AWS_REGION=${region}`,
        "export AWS_CA_BUNDLE=ca.pem",
        `aws s3 cp report.pdf s3://${bucket}/`,
      ].join("\n"),
    },
    {
      title: "Python (boto3)",
      text: [
        "import boto3",
        "from botocore.config import Config",
        "",
        "s3 = boto3.client(",
        '    "s3",',
        `    endpoint_url="${endpoint}",`,
        `    region_name="${region}",`,
        '    verify="ca.pem",',
        '    config=Config(signature_version="s3v4"),',
        ")",
        `s3.put_object(Bucket="${bucket}", Key="greetings/one.txt", Body=b"hello")`,
      ].join("\n"),
    },
    {
      title: "Node.js",
      text: [
        'import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";',
        "",
        "// with NODE_EXTRA_CA_CERTS=ca.pem in the environment",
        `const s3 = new S3Client({ endpoint: "${endpoint}", region: "${region}" });`,
        `await s3.send(new PutObjectCommand({ Bucket: "${bucket}", Key: "greetings/one.txt", Body: "hello" }));`,
      ].join("\n"),
    },
    {
      title: "rclone",
      text: [
        "[files]",
        "type = s3",
        "provider = Other",
        "env_auth = true",
        `endpoint = ${endpoint}`,
        `region = ${region}`,
        "",
        `# rclone --ca-cert ca.pem copy . files:${bucket}`,
      ].join("\n"),
    },
  ];
}
