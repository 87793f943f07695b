import { observedNode, observedService } from "@holdfast/testing/controller/observed-service.ts";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import { expect, test } from "vitest";
import { progressOf } from "./managed-service-progress.ts";

test.each(["preparing", "starting"])(
  "what an engine reports while it is %s extends an operation's deadline",
  (state) => {
    const { service, operation } = newServiceObject();
    const reasons = ["The engine recovers after a crash.", "The engine recovers after a crash: it has read 32 MiB."];
    const marks = [...reasons, ...reasons.slice(1)].map((reason) => {
      const nodes = service.spec.nodes.map((node) => observedNode(node, { state, reason }));
      return progressOf(service, observedService(nodes), operation).mark;
    });
    expect(marks[1]).not.toBe(marks[0]);
    expect(marks[2]).toBe(marks[1]);
  },
);
