import { AlertService } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { HealthService } from "@holdfast/proto/holdfast/v1/health_pb.ts";
import { ManagedServiceService } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { type ApiMethod, restRule } from "./method.ts";
import { createPathNames, linksOf, operationIdOf } from "./openapi/path-names.ts";
import { ownerMethods } from "./owner-paths.ts";

const methodsOf = ({ methods }: typeof HealthService | typeof AlertService | typeof ManagedServiceService) =>
  methods.map((description) =>
    partial<ApiMethod>({ name: description.name, description, rest: restRule(description) }),
  );
const boards = { kind: "board", segment: "boards" };

test("methods about owners are also below the path of each kind, and others are not", () => {
  const own = ownerMethods([...methodsOf(HealthService), ...methodsOf(ManagedServiceService)], [boards]);
  expect(own.map(({ ownerKind, rest }) => `${ownerKind}: ${rest?.verb} ${rest?.path}`)).toEqual([
    "board: GET /boards/{service_id}/health",
    "board: GET /boards/{service_id}/health/history",
    "board: GET /boards/{id}/logs",
  ]);
  expect(ownerMethods(methodsOf(HealthService), [])).toEqual([]);
});

test("a created object is at the path of its kind, and its links have ids of their own", () => {
  const declared = methodsOf(AlertService);
  const methods = [...declared, ...ownerMethods(declared, [boards])];
  const create = methods.find(({ ownerKind, name }) => ownerKind !== undefined && name === "CreateAlertRule");
  expect(create?.rest?.location).toBe("/boards/{service_id}/alerts/rules/{id}");
  const ids = methods.map(operationIdOf);
  expect(new Set(ids).size).toBe(ids.length);
  const names = createPathNames(methods.flatMap(({ rest }) => rest ?? []));
  const links = create?.rest && linksOf(create.rest, methods, names);
  expect(links?.["GetAlertRule"]).toMatchObject({ operationId: "getAlertRule-of-board" });
});
