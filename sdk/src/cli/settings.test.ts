import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readSettings } from "./settings.ts";

const admin = {
  base_url: "https://127.0.0.1:1",
  ca_file: "/ca.pem",
  username: "operator",
  password: "p",
  api_key_id: "hfk_1",
  api_key_secret: "s",
};
let directory = "";

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-test-"));
  writeFileSync(join(directory, "admin.json"), JSON.stringify(admin));
});
afterAll(() => rmSync(directory, { recursive: true }));

const key = (name: string, secret: string) => ({ kind: "basic", name, secret });

describe("settings", () => {
  test("admin.json needs nothing else: the key for services, the operator for the platform", () => {
    expect(readSettings({}, {}, directory)).toEqual({
      baseUrl: "https://127.0.0.1:1",
      caFile: "/ca.pem",
      credentials: key("hfk_1", "s"),
      operator: key("operator", "p"),
      dataDirectory: directory,
    });
  });

  test("the environment goes over admin.json, a token over a key, flags over all", () => {
    const environment = {
      HOLDFAST_DATA: directory,
      HOLDFAST_API_KEY_ID: "hfk_2",
      HOLDFAST_API_KEY_SECRET: "t",
      HOLDFAST_CA_FILE: "/other.pem",
    };
    expect(readSettings({}, environment, "/none")).toMatchObject({
      credentials: key("hfk_2", "t"),
      operator: key("hfk_2", "t"),
      caFile: "/other.pem",
    });
    expect(readSettings({}, { ...environment, HOLDFAST_TOKEN: "hft_3" }, "/none").credentials).toEqual({
      kind: "bearer",
      token: "hft_3",
    });
    expect(readSettings({ caFile: "/flag.pem" }, environment, "/none").caFile).toBe("/flag.pem");
  });

  test("the credential of this host is not sent to another one", () => {
    expect(() => readSettings({ baseUrl: "https://elsewhere" }, {}, directory)).toThrow("no credential");
  });

  test("what is missing is named", () => {
    expect(() => readSettings({}, {}, "/none")).toThrow("there is no installation in /none");
    expect(() => readSettings({}, { HOLDFAST_BASE_URL: "https://x", HOLDFAST_API_KEY_ID: "hfk_1" }, "/none")).toThrow(
      "without HOLDFAST_API_KEY_SECRET",
    );
  });
});
