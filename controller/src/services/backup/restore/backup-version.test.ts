import { expect, test } from "vitest";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { sourceOf } from "../archive/archive.ts";
import { serviceIn, sourceIn } from "./backup-version.ts";

const parameters = { work_mem: "5MB", frobnicate: "on" };
const service = runningService({}, { version: "18", image: "sid-1", parameters });

test("a copy has its backup's version, and the parameters that the version has", () => {
  const source = sourceOf(service);
  expect(sourceIn("17", source)).toMatchObject({ version: "17", parameters: { work_mem: "5MB" } });
  expect(sourceIn("17", source).parameters).not.toHaveProperty("frobnicate");
  expect(sourceIn("18", source)).toEqual(source);
});

test("an undeleted service has its backup's version, and the parameters that the version has", () => {
  const { spec } = serviceIn("17", service);
  expect(spec).toMatchObject({ version: "17", image: "" });
  expect(spec.parameters).toEqual({ work_mem: "5MB" });
  expect(serviceIn("18", service)).toEqual(service);
});
