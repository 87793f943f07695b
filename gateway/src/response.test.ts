import { create } from "@bufbuild/protobuf";
import { ConfigurationSchema } from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import { OperationStatus } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { createInMemoryServices } from "@holdfast/testing/controller/in-memory-services.ts";
import { expect, test } from "vitest";
import { compileResponse } from "./response.ts";
import { createEncoders } from "./json/encode.ts";
import { describeMethods } from "./method.ts";

const methods = describeMethods(createInMemoryServices().services);

function answerOf(name: string) {
  const method = methods.find(({ description }) => description.name === name);
  if (method?.rest === undefined) throw new Error(`${name} is no method of REST`);
  return compileResponse(method, method.rest, createEncoders()(method.description.output));
}

test("a change in progress is 202 with the path of its operation", () => {
  const answer = answerOf("UpdateConfiguration");
  const withOperation = (status: OperationStatus) =>
    answer(create(ConfigurationSchema, { parameters: {}, operation: { id: "op 1", status } }));
  expect(withOperation(OperationStatus.RUNNING)).toMatchObject({
    status: 202,
    headers: { location: "/operations/op%201" },
  });
  expect(withOperation(OperationStatus.PENDING).status).toBe(202);
  expect(withOperation(OperationStatus.COMPLETED)).toMatchObject({ status: 200, headers: {} });
  const done = answer(create(ConfigurationSchema));
  expect(done).toMatchObject({ status: 200, body: '{"parameters":{},"operation":null}' });
  expect(done.headers).not.toHaveProperty("location");
});

test("a frozen output is encoded once", () => {
  const answer = answerOf("GetConfiguration");
  const frozen = Object.freeze(create(ConfigurationSchema));
  expect(answer(frozen)).toBe(answer(frozen));
  const open = create(ConfigurationSchema);
  expect(answer(open)).not.toBe(answer(open));
});
