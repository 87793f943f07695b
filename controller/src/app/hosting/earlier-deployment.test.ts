import { describe, expect, test } from "vitest";
import { newMetadata } from "#kernel/store/resource.ts";
import { type DeploymentObject, newDeploymentStatus } from "./deployment.ts";
import { earlierDeployment } from "./earlier-deployment.ts";

function deployment(number: number, state: DeploymentObject["status"]["state"]): DeploymentObject {
  return {
    metadata: newMetadata(`d${number}`, 0, { name: "shop", organizationId: "o" }),
    spec: {
      appId: "a",
      number,
      settings: {
        imageRef: `shop:${number}`,
        command: [],
        environment: {},
        sealedEnvironment: "",
        secretNames: [],
        port: 8_080,
        healthCheckPath: "",
        startTimeoutSeconds: 60,
        drainSeconds: 30,
      },
    },
    status: { ...newDeploymentStatus("sha256:a"), state },
  };
}

const all = [
  deployment(1, "succeeded"),
  deployment(2, "succeeded"),
  deployment(3, "failed"),
  deployment(4, "succeeded"),
];
const withFailed = [...all, deployment(5, "failed")];

describe("a rollback", () => {
  test.each([
    ["d4", undefined, "d2"],
    ["d2", undefined, "d1"],
    ["d4", "d1", "d1"],
    ["d2", "d4", "d4"],
    ["d4", "d3", "d3"],
  ])("from %s to %s is to %s", (servingId, chosen, expected) => {
    expect(earlierDeployment(all, servingId, chosen).metadata.id).toBe(expected);
  });

  test.each([
    ["d1", undefined, "WRONG_STATE"],
    [null, undefined, "WRONG_STATE"],
    ["d4", "d9", "OBJECT_NOT_FOUND"],
  ])("from %s to %s is refused", (servingId, chosen, key) => {
    expect(() => earlierDeployment(all, servingId, chosen)).toThrow(expect.objectContaining({ key }));
  });
});

test("a rollback right after a failed deployment names what serves, and is to a chosen one only", () => {
  const detail =
    "Deployment 5 failed and changed nothing: number 4 (shop:4) serves. " +
    "To deploy number 2 (shop:2), name its deployment_id, d2.";
  expect(() => earlierDeployment(withFailed, "d4", undefined)).toThrow(
    expect.objectContaining({ key: "WRONG_STATE", detail }),
  );
  expect(earlierDeployment(withFailed, "d4", "d2").metadata.id).toBe("d2");
  expect(earlierDeployment(withFailed, "d4", "d5").metadata.id).toBe("d5");
  const only = [deployment(1, "succeeded"), deployment(2, "failed")];
  expect(() => earlierDeployment(only, "d1", undefined)).toThrow(
    expect.objectContaining({ detail: expect.stringContaining("No earlier deployment has served.") }),
  );
});

test("a rollback passes over deployments that repeat the one that serves", () => {
  const second = deployment(2, "succeeded");
  const restart = { ...second, metadata: { ...second.metadata, id: "d3" }, spec: { ...second.spec, number: 3 } };
  expect(earlierDeployment([deployment(1, "succeeded"), second, restart], "d3", undefined).metadata.id).toBe("d1");
});
