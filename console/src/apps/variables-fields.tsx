import { Button } from "../parts/button.tsx";
import { TextField } from "../parts/field.tsx";
import type { Form } from "../parts/use-form.ts";
import { type DeploymentInput, environmentFault, type SecretVariable, secretsFault } from "./hosted-view.ts";

interface VariablesProps {
  readonly variables: readonly SecretVariable[];
  /** Names of the variables that are set. */
  readonly before: readonly string[];
  readonly onInput: (variables: readonly SecretVariable[]) => void;
  readonly fault: string | undefined;
}

/** Secret variables as rows of a name and a value. Values that are set are never returned, so they are empty. */
function SecretVariables({ variables, before, onInput, fault }: VariablesProps) {
  const set = (index: number, change: Partial<SecretVariable>) =>
    onInput(variables.map((each, at) => (at === index ? { ...each, ...change } : each)));
  return (
    <fieldset class="field">
      <legend>
        <b>Secret variables</b>
      </legend>
      <div class="stack" data-gap="s">
        {variables.map(({ name, value }, index) => (
          <div class="row fields" key={index}>
            <TextField
              label={`Name of secret ${index + 1}`}
              value={name}
              onInput={(text) => set(index, { name: text })}
              autocomplete="off"
            />
            <TextField
              label={`Value of secret ${index + 1}`}
              help={before.includes(name.trim()) ? "Empty: unchanged" : undefined}
              type="password"
              value={value}
              onInput={(text) => set(index, { value: text })}
              autocomplete="off"
            />
            <Button kind="plain" onClick={() => onInput(variables.filter((_, at) => at !== index))}>
              Remove<span class="visually-hidden"> secret {index + 1}</span>
            </Button>
          </div>
        ))}
        <div class="row">
          <Button icon="plus" onClick={() => onInput([...variables, { name: "", value: "" }])}>
            Add a secret variable
          </Button>
        </div>
      </div>
      {fault !== undefined && <p class="fault">{fault}</p>}
    </fieldset>
  );
}

interface DeploymentFieldsProps {
  readonly form: Form<DeploymentInput>;
  /** Names of the secret variables that are set. */
  readonly secretNames: readonly string[];
}

/** The fields of a deployment: image, port, program and variables. */
export function DeploymentFields({ form, secretNames }: DeploymentFieldsProps) {
  const { values, set } = form;
  return (
    <>
      <div class="halves">
        <TextField
          label="Image"
          help="In the platform's registry, such as shop:1"
          {...form.field("image", "image_ref")}
          autocomplete="off"
        />
        <TextField
          label="Port"
          help="On which the program listens; it also gets it as PORT"
          type="number"
          min={1}
          max={65_535}
          {...form.field("port")}
        />
        <TextField
          label="Path of the health check"
          help="Responds with 200 to 399 once a release is ready; empty if its port alone decides"
          {...form.field("healthPath", "health_check_path")}
          autocomplete="off"
        />
        <TextField
          label="Program and arguments"
          help="One per line, in place of the image's"
          lines
          {...form.field("command")}
        />
      </div>
      <TextField
        label="Variables"
        help="A line NAME=value each"
        lines
        {...form.field("env")}
        fault={environmentFault(values.env) ?? form.fault("env")}
      />
      <SecretVariables
        variables={values.secrets}
        before={secretNames}
        onInput={(secrets) => set("secrets", secrets)}
        fault={secretsFault(values.secrets, secretNames) ?? form.fault("secret_env") ?? form.fault("set_secret_env")}
      />
    </>
  );
}

/** The reason why the fields cannot be sent; undefined if they can. */
export function deploymentFault(input: DeploymentInput, secretNames: readonly string[]): string | undefined {
  return environmentFault(input.env) ?? secretsFault(input.secrets, secretNames);
}
