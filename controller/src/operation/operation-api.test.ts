import { OperationService } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createCursors } from "#kernel/page/cursor.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { newMetadata, type Resource, type Stored } from "#kernel/store/resource.ts";
import { methodsOf, testCall } from "@holdfast/testing/api/test-call.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { createOperationApi } from "./operation-api.ts";
import { defineOperation, newOperation } from "./operation-definition.ts";
import { operationKind, type Subject } from "./operation.ts";

let fixture: TestStore;
beforeAll(async () => {
  fixture = await startTestStore();
});
afterAll(() => fixture?.close());

const repaint = defineOperation({ type: "repaint", of: "the board" });

function subjectsOf(kind: string, organizationId: string, ids: readonly string[]) {
  const stored = (id: string): Stored<Resource<unknown, unknown>> => ({
    object: { metadata: newMetadata(id, 0, { organizationId }), spec: {}, status: {} },
    modRevision: 1n,
  });
  return { kind, get: (id: string) => (ids.includes(id) ? stored(id) : undefined) };
}

test("operations are listed by their subject, of any kind, for its organization alone", async () => {
  const [service, board, foreign] = [uuidv7(), uuidv7(), uuidv7()];
  const subjects = [
    { ...subjectsOf("managed-service", "o", [service]), ownerKindOf: () => "files-service" },
    subjectsOf("board", "o", [board]),
    subjectsOf("note", "another", [foreign]),
  ];
  const unit = fixture.begin();
  const add = (subject: Subject, organizationId = "o") => {
    const operation = newOperation({ id: uuidv7(), subject, organizationId, type: repaint, now: 1_000 });
    unit.create(operationKind, operation);
    return operation.metadata.id;
  };
  const ofService = add({ kind: "managed-service", id: service });
  const ofBoard = [add({ kind: "board", id: board }), add({ kind: "board", id: board })];
  add({ kind: "note", id: foreign }, "another");
  await fixture.collections.operations.untilRevision(await unit.commit(), 5_000);

  const sealer = createSealer({ current: "v1", keys: new Map([["v1", Buffer.alloc(32, 1)]]) });
  const { operations } = fixture.collections;
  const api = methodsOf(OperationService, createOperationApi({ operations, subjects, cursors: createCursors(sealer) }));
  const listed = async (serviceId: string, call = testCall()) =>
    (await api.listOperations({ serviceId }, call)).operations.map(({ id }) => id);
  expect(await listed(service)).toEqual([ofService]);
  expect(await listed(board)).toEqual(ofBoard.toReversed());
  for (const absent of [foreign, uuidv7()]) await expect(listed(absent)).rejects.toThrow("There is no such service");

  expect(await listed(board, testCall({ ownerKind: "board" }))).toEqual(ofBoard.toReversed());
  await expect(listed(board, testCall({ ownerKind: "easel" }))).rejects.toThrow("There is no such easel");
  // Operations of one kind may be below the paths of several kinds of owners.
  expect(await listed(service, testCall({ ownerKind: "files-service" }))).toEqual([ofService]);
  await expect(listed(service, testCall({ ownerKind: "managed-service" }))).rejects.toThrow("There is no such");

  const principal = testCall().principal;
  if (principal === undefined) throw new Error("the call has no caller");
  const limited = testCall({ principal: { ...principal, resources: [{ kind: "managed-service", id: service }] } });
  expect(await listed(service, limited)).toEqual([ofService]);
  await expect(listed(board, limited)).rejects.toThrow("There is no such service");
});
