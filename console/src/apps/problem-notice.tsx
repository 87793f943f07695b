import { ActionButton } from "../parts/action-button.tsx";
import { ButtonLink } from "../parts/button.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Card, CopyButton } from "../parts/parts.tsx";
import { visibleText } from "../logs/logs-view.ts";
import { hrefOf } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import type { HostedAppProps } from "./app-props.ts";
import { changeRefusal, problemOf, wayBack } from "./hosted-view.ts";
import { useDeployments } from "./use-deployments.ts";

interface ProblemProps extends HostedAppProps {
  /** True on the page with the form that deploys. */
  readonly hasForm?: boolean;
}

/** The problem of the app or its newest deployment, its effect on clients, the next steps, and the last lines. */
export function ProblemNotice({ app, hosted, reload, hasForm = false }: ProblemProps) {
  const deployments = useDeployments(app);
  const problem = problemOf(app, hosted);
  if (problem === undefined) return null;
  const { apps } = account.value.client;
  const refusal = refusalOf("apps:write") ?? changeRefusal(app);
  const failed = deployments.data?.find(({ number }) => number === problem.failed);
  const back = app.status === "Error" ? wayBack(deployments.data ?? []) : undefined;
  const repeat = (id: string) =>
    apps.rollBack(app.id, id).then(() => {
      deployments.reload();
      reload();
    });
  const lines = problem.lines.map(visibleText);
  return (
    <>
      <Notice tone={problem.tone}>
        <div class="stack" data-gap="s">
          <p>
            <b>{problem.title}</b>
            {failed !== undefined && (
              <>
                {" "}
                <Age time={failed.finished_at} />
              </>
            )}
          </p>
          <p>{problem.reason}</p>
          <p>{problem.advice}</p>
          <div class="row">
            {back !== undefined && (
              <ActionButton refusal={refusal} run={() => repeat(back.id)}>
                Roll back to deployment {back.number} ({back.image_ref})
              </ActionButton>
            )}
            {problem.failed !== undefined && !hasForm && (
              <ButtonLink href={hrefOf("apps", app.id, "deployments")}>Change and deploy</ButtonLink>
            )}
            {failed !== undefined && (
              <ActionButton refusal={refusal} run={() => repeat(failed.id)}>
                Deploy it again unchanged
              </ActionButton>
            )}
            <ButtonLink href={hrefOf("apps", app.id, "logs")}>See the log</ButtonLink>
          </div>
        </div>
      </Notice>
      {lines.length > 0 && (
        <Card
          title={`Last ${lines.length} lines of ${problem.failed === undefined ? "the release" : `deployment ${problem.failed}`}`}
          flush
          actions={<CopyButton text={lines.join("\n")} label="Copy the last lines" title="Copy" />}
        >
          <pre class="log last-lines">{lines.map((line) => `${line}\n`)}</pre>
        </Card>
      )}
    </>
  );
}
