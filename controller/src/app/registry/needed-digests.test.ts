import { expect, test } from "vitest";
import { type DeploymentObject, newDeploymentStatus } from "../hosting/deployment.ts";
import { neededDigests } from "./needed-digests.ts";

const [served, named, other] = ["a", "b", "c"].map((letter) => `sha256:${letter.repeat(64)}`) as [
  string,
  string,
  string,
];

function deployment(imageRef: string, digest: string | null) {
  const object = { spec: { settings: { imageRef } }, status: newDeploymentStatus(digest) } as DeploymentObject;
  return { object, modRevision: 1n } as never;
}

test("images of deployments are needed, by their digest or by the one that a new deployment names", () => {
  const deployments = [deployment("shop:1", served), deployment(`shop@${named}`, null), deployment("shop:2", null)];
  expect(neededDigests(deployments, [other, named, served])).toEqual([named, served]);
  expect(neededDigests([], [other, named, served])).toEqual([]);
});
