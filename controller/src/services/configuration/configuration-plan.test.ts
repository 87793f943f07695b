import { create } from "@bufbuild/protobuf";
import { NullValue, ValueSchema } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import { createEngineOffers } from "#catalog/engine-offer.ts";
import { changedParameters } from "./configuration-plan.ts";

test("a stored parameter that the catalog no longer has can be reset, and no other unknown one", () => {
  const engine = createEngineOffers([]).find(({ databaseType }) => databaseType === "valkey");
  if (engine === undefined) throw new Error("there is no Valkey");
  const { spec } = newServiceObject().service;
  const stored = { ...spec, databaseType: "valkey", version: "8.1", parameters: { activedefrag: "yes", timeout: "9" } };
  const reset = create(ValueSchema, { kind: { case: "nullValue", value: NullValue.NULL_VALUE } });
  const context = { engine, catalog: defaultCatalog, primary: undefined };
  expect(changedParameters(stored, { activedefrag: reset }, context)).toEqual({
    parameters: { timeout: "9" },
    faults: [],
  });
  expect(changedParameters(stored, { activerehashing: reset }, context).faults).toMatchObject([
    { code: "unknown_parameter" },
  ]);
});
