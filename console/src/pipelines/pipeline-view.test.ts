import type { PipelineTemplate } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { connectionParts, pipelineTone, templateDetail } from "./pipeline-view.ts";

test("a running pipeline is complete", () => {
  expect(pipelineTone("running")).toBe("good");
  expect(pipelineTone("deploying")).toBe("busy");
});

test("a template has its engines", () => {
  const services = [
    { database_type: "postgresql", version: "17" },
    { database_type: "valkey", version: null },
  ];
  const template = partial<PipelineTemplate>({ description: "Documents and vectors.", services });
  expect(templateDetail(template)).toBe("Documents and vectors. With postgresql 17, valkey.");
});

test("parts with a password are secret", () => {
  const parts = connectionParts({
    bootstrap_servers: null,
    security_protocol: null,
    sasl_mechanism: null,
    connection_uri: "postgres://app:p@h/d",
    endpoint: "https://search",
    username: "app",
    password: "p",
  });
  expect(parts.map(({ title, isSecret }) => [title, isSecret])).toEqual([
    ["Connection URI", true],
    ["Endpoint", false],
    ["Username", false],
    ["Password", true],
  ]);
});
