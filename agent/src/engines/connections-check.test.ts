import { expect, test } from "vitest";
import { connectionsCheck } from "./connections-check.ts";

test("nearly all connections in use are reported, with a pooler as the remedy where clients share its sessions", () => {
  expect(connectionsCheck("mysql", 89, 100)).toEqual({ name: "connections", status: "healthy", reason: "" });
  const reasonOf = (engine: string) => {
    const check = connectionsCheck(engine, 90, 100);
    expect(check).toMatchObject({ name: "connections", status: "degraded" });
    return check.reason;
  };
  expect(reasonOf("postgresql")).toContain("Close some, use a pooler, or raise the connection limit.");
  for (const engine of ["mysql", "tsql", "valkey", "kafka"])
    expect(reasonOf(engine)).toContain("Close some, or raise the connection limit.");
});
