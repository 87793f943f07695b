import type { AppDeployment, AppNode } from "@holdfast/sdk/responses.ts";
import { useEffect, useRef } from "preact/hooks";
import { spanText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Badge, Card } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import type { Tone } from "../tone.ts";
import type { HostedAppProps } from "./app-props.ts";
import {
  changeRefusal,
  type DeploymentInput,
  deploymentInputOf,
  deploymentOf,
  deploymentState,
  isSettled,
  machineState,
  withoutValues,
} from "./hosted-view.ts";
import { ProblemNotice } from "./problem-notice.tsx";
import { pollMsOfApp, useDeployments } from "./use-deployments.ts";
import { DeploymentFields, deploymentFault } from "./variables-fields.tsx";

/** Deployments of a hosted app with a way back to each, the machines that run it, and a form that deploys. */
export function DeploymentsTab({ app, hosted, reload }: HostedAppProps) {
  const { apps } = account.value.client;
  const live = useDeployments(app);
  const nodes = useLive<readonly AppNode[]>(
    `machines ${app.id}`,
    async (signal) => (await apps.nodes(app.id, { signal })).nodes,
    { service: app.id, pollIntervalMs: pollMsOfApp(app) },
  );
  const numberOf = (id: string | null) => live.data?.find((each) => each.id === id)?.number;
  const refusal = refusalOf("apps:write") ?? changeRefusal(app);
  return (
    <>
      <ProblemNotice app={app} hosted={hosted} reload={reload} hasForm />
      <LiveTable
        title="Deployments"
        live={live}
        keyOf={({ id }) => id}
        icon="box"
        empty="No deployment yet"
        columns={[
          ["Number", ({ number }) => <b>{number}</b>],
          ["State", (deployment) => <DeploymentBadge deployment={deployment} />],
          [
            "Image",
            ({ image_ref: image, image_digest: digest }) => (
              <>
                {image}
                {digest !== null && <code class="payload small quiet">{digest}</code>}
              </>
            ),
          ],
          ["Created", ({ created_at: time }) => <Age time={time} />],
          ["Took", ({ created_at: start, finished_at: end }) => <span class="number">{spanText(start, end)}</span>],
          [
            "",
            ({ id, number, serves, status }) =>
              !serves &&
              status === "succeeded" && (
                <ActionButton
                  kind="plain"
                  refusal={refusal}
                  run={() => apps.rollBack(app.id, id).then(reload)}
                  done={`Deployment ${number} is deployed again`}
                >
                  Roll back<span class="visually-hidden"> to deployment {number}</span>
                </ActionButton>
              ),
          ],
        ]}
      />
      <LiveTable
        title="Machines"
        live={nodes}
        keyOf={({ id }) => id}
        icon="server"
        empty="No machines yet"
        columns={[
          ["Machine", ({ id }) => <span class="mono small">{id}</span>],
          ["State", (node) => <StateBadge {...machineState(node, app)} />],
          ["Serves deployment", ({ deployment_id: id }) => numberOf(id) ?? "none"],
          ["Zone", ({ zone }) => zone],
        ]}
      />
      <Deploy
        app={app}
        hosted={hosted}
        reload={() => {
          live.reload();
          reload();
        }}
      />
    </>
  );
}

function DeploymentBadge({ deployment }: { readonly deployment: AppDeployment }) {
  return (
    <>
      <StateBadge {...deploymentState(deployment)} />
      {deployment.reason !== null && <p class="small quiet">{deployment.reason}</p>}
    </>
  );
}

function StateBadge({ text, tone }: { readonly text: string; readonly tone: Tone }) {
  return <Badge tone={tone}>{text}</Badge>;
}

/** A form with the settings of what serves. Its input remains while it is deployed, and if that fails. */
function Deploy({ app, hosted: newest, reload }: HostedAppProps) {
  const settled = useRef(newest);
  if (isSettled(newest)) settled.current = newest;
  const hosted = settled.current;
  const form = useForm<DeploymentInput>(deploymentInputOf(hosted));
  const { secret_env_names: secretNames, serving_deployment_number: serving } = hosted;
  const forgetSecrets = () => form.set("secrets", withoutValues(form.values.secrets, secretNames));
  useEffect(forgetSecrets, [serving]);
  return (
    <Card title="Deploy">
      <FormBody
        form={form}
        action="Deploy"
        kind="primary"
        refusal={refusalOf("apps:write") ?? changeRefusal(app) ?? deploymentFault(form.values, secretNames)}
        send={async (input) => {
          await account.value.client.apps.update(app.id, deploymentOf(input, hosted));
          reload();
        }}
      >
        <p class="quiet">The release that serves now serves until the new one is ready on all machines.</p>
        <DeploymentFields form={form} secretNames={secretNames} />
      </FormBody>
    </Card>
  );
}
