import { ProjectService } from "@holdfast/proto/holdfast/v1/project_pb.ts";
import { callerScoped, casesOf, type Contract, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/contract/contract.ts" {
  interface Existing {
    readonly projectId: string;
    readonly projectName: string;
    readonly deploymentId: string;
  }
}

const project = objectScoped(({ projectName }) => ({ name: projectName }));
const deployment = objectScoped(({ projectName, deploymentId }) => ({
  name: projectName,
  deployment_id: deploymentId,
}));

export default {
  authorization: [
    casesOf(ProjectService, {
      deployProject: callerScoped(() => ({ descriptor: btoa(JSON.stringify({ name: "stolen", resources: [] })) })),
      planProject: callerScoped(() => ({ descriptor: btoa(JSON.stringify({ name: "stolen", resources: [] })) })),
      listProjects: ofCaller,
      getProject: project,
      listDeployments: project,
      getDeployment: deployment,
      abortDeployment: deployment,
      getDrift: project,
      releaseResource: objectScoped(({ projectName }) => ({ name: projectName, logical_name: "db" })),
      deleteProject: project,
      getProjectSchema: ofCaller,
    }),
  ],
  existing: async ({ make, marker }) => {
    const descriptor = { name: marker, resources: [] };
    const deployed = await make<{ project_id: string; deployment_id: string }>("/projects/deploy", { descriptor });
    return { projectId: deployed.project_id, projectName: marker, deploymentId: deployed.deployment_id };
  },
  sdk: [
    sdkCalls(ProjectService, {
      deployProject: (c) => c.projects.deploy({ name: "n", resources: [] }, { planDigest: "d" }),
      planProject: (c) => c.projects.plan({ name: "n", resources: [] }),
      listProjects: (c) => c.projects.list(page),
      getProject: (c) => c.projects.get("n"),
      listDeployments: (c) => c.projects.deployments("n", page),
      getDeployment: (c) => c.projects.deployment("n", "d"),
      abortDeployment: (c) => c.projects.abort("n", "d"),
      getDrift: (c) => c.projects.drift("n"),
      releaseResource: (c) => c.projects.release("n", "r"),
      deleteProject: (c) => c.projects.delete("n"),
      getProjectSchema: (c) => c.projects.schema(),
    }),
  ],
  listBounds: {
    "holdfast.v1.DeployedProject.plan": "100 resources, and those of before",
    "holdfast.v1.Deployment.plan": "100 resources, and those of before",
    "holdfast.v1.Deployment.resources": "100 resources, and those of before",
    "holdfast.v1.PlanEntry.changes": "members of one spec",
    "holdfast.v1.PlanEntry.drift": "members of one spec",
    "holdfast.v1.PlanEntry.pending_changes": "members of one spec",
    "holdfast.v1.Project.resources": "100 resources, and those of before",
    "holdfast.v1.ProjectDrift.resources": "100 resources, and those of before",
    "holdfast.v1.ProjectPlan.plan": "100 resources, and those of before",
    "holdfast.v1.ProjectPlan.warnings": "three",
    "holdfast.v1.ResourceDrift.changes": "members of one spec",
  },
  nameScopes: {
    "project-api.ts": "organization",
  },
  sentSecrets: {
    "holdfast.v1.DeployProjectRequest.descriptor": "complete in each request, and opened only for its members",
    "holdfast.v1.PlanProjectRequest.descriptor": "not stored",
  },
} satisfies Contract;
