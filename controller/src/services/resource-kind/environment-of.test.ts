import { expect, test } from "vitest";
import { environmentOf, isReservedName, prefixOf } from "./environment-of.ts";
import type { AppOutputs, Attached, DatabaseOutputs, FilesOutputs } from "#resource-kind/outputs.ts";

const consumer = { apiToken: "hft_token", apiUrl: "https://holdfast.example" };
const always = { PLATFORM_API_TOKEN: "hft_token", PLATFORM_API_URL: "https://holdfast.example" };
const database = (engine: string, port: number): DatabaseOutputs => ({
  type: "database",
  engine,
  host: "db.internal",
  port,
  username: "app_user",
  password: "p@ss/word",
  database: engine === "valkey" ? "0" : "defaultdb",
});
const files: FilesOutputs = {
  type: "files",
  endpoint: "https://s3",
  bucket: "b",
  accessKeyId: "id",
  secretAccessKey: "key",
};
const app: AppOutputs = { type: "app", host: "api.internal", port: 8080 };
const attached = (name: string, outputs: Attached["outputs"]): Attached => ({ prefix: prefixOf(name), outputs });
const postgresUri =
  "postgres://app_user:p%40ss%2Fword@db.internal:5432/defaultdb?sslmode=verify-full&sslrootcert=/etc/holdfast/ca.pem";

// The specification's table (3, Injected environment variables), row by row.
test.each<[string, readonly Attached[], Record<string, string>]>([
  ["nothing", [], {}],
  ["one postgres", [attached("db", database("postgresql", 5432))], { DATABASE_URL: postgresUri }],
  [
    "several postgres",
    [attached("orders-db", database("postgresql", 5432)), attached("users", database("postgresql", 5432))],
    { ORDERS_DB_DATABASE_URL: postgresUri, USERS_DATABASE_URL: postgresUri },
  ],
  [
    "one files service",
    [attached("media", files)],
    { S3_ENDPOINT: "https://s3", S3_BUCKET: "b", S3_ACCESS_KEY: "id", S3_SECRET: "key" },
  ],
  [
    "several files services",
    [attached("a", files), attached("b-c", files)],
    {
      A_S3_ENDPOINT: "https://s3",
      A_S3_BUCKET: "b",
      A_S3_ACCESS_KEY_ID: "id",
      A_S3_SECRET_ACCESS_KEY: "key",
      B_C_S3_ENDPOINT: "https://s3",
      B_C_S3_BUCKET: "b",
      B_C_S3_ACCESS_KEY_ID: "id",
      B_C_S3_SECRET_ACCESS_KEY: "key",
    },
  ],
  [
    "an app, without secrets",
    [attached("api", app)],
    { API_HOST: "api.internal", API_PORT: "8080", API_URL: "http://api.internal:8080" },
  ],
  [
    "another engine besides one postgres",
    [attached("db", database("postgresql", 5432)), attached("cache", database("valkey", 6379))],
    {
      DATABASE_URL: postgresUri,
      CACHE_HOST: "db.internal",
      CACHE_PORT: "6379",
      CACHE_USERNAME: "app_user",
      CACHE_PASSWORD: "p@ss/word",
      CACHE_URL: "rediss://app_user:p%40ss%2Fword@db.internal:6379/0",
    },
  ],
  [
    "an engine whose URI names the trust bundle",
    [attached("docs", database("mongodb", 27_017))],
    {
      DOCS_HOST: "db.internal",
      DOCS_PORT: "27017",
      DOCS_USERNAME: "app_user",
      DOCS_PASSWORD: "p@ss/word",
      DOCS_URL:
        "mongodb://app_user:p%40ss%2Fword@db.internal:27017/defaultdb?tls=true&authSource=admin&tlsCAFile=/etc/holdfast/ca.pem",
    },
  ],
])("of a consumer with %s attached", (_, attachments, variables) => {
  expect(environmentOf(consumer, attachments)).toEqual({ ...variables, ...always });
});

test.each([
  ["PLATFORM_API_TOKEN", true],
  ["DATABASE_URL", true],
  ["S3_SECRET", true],
  ["DB_DATABASE_URL", true],
  ["DB_HOST", true],
  ["DB_NAME", false],
  ["OTHER_HOST", false],
])("the name %s is reserved beside the prefix DB: %s", (name, reserved) => {
  expect(isReservedName(name, ["DB"])).toBe(reserved);
});

test("every variable of the platform is a reserved name", () => {
  const attachments = [
    attached("a", files),
    attached("b", files),
    attached("c", app),
    attached("d", database("valkey", 1)),
    attached("e", database("postgresql", 1)),
    attached("f", database("postgresql", 1)),
  ];
  const prefixes = attachments.map(({ prefix }) => prefix);
  for (const name of Object.keys(environmentOf(consumer, attachments)))
    expect([name, isReservedName(name, prefixes)]).toEqual([name, true]);
});
