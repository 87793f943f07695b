import type { DataPlane, DataPlaneName } from "@holdfast/common/data-planes.ts";
import { dnsPlane } from "@holdfast/dns/data-plane.ts";
import { inferencePlane } from "@holdfast/inference/data-plane.ts";
import { ingressPlane } from "@holdfast/ingress/data-plane.ts";
import { issuerPlane } from "@holdfast/issuer/data-plane.ts";
import { registryPlane } from "@holdfast/registry/data-plane.ts";
import { storePlane } from "@holdfast/store/data-plane.ts";

/** The processes of data planes that an installation starts, each declared in its package. */
export const localDataPlanes: Readonly<Record<DataPlaneName, DataPlane>> = {
  dns: dnsPlane,
  issuer: issuerPlane,
  store: storePlane,
  inference: inferencePlane,
  registry: registryPlane,
  ingress: ingressPlane,
};
