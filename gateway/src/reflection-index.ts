import type { DescFile, DescMessage, DescService } from "@bufbuild/protobuf";

/** Files of descriptors by the names that reflection requests contain. */
export interface ReflectionIndex {
  readonly services: readonly string[];
  fileByName(name: string): DescFile | undefined;
  fileOfSymbol(symbol: string): DescFile | undefined;
  fileOfExtension(extendee: string, number: number): DescFile | undefined;
  /** Undefined if there is no such message. */
  extensionNumbers(extendee: string): number[] | undefined;
}

export function createReflectionIndex(services: readonly DescService[]): ReflectionIndex {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescFile>>();

  function addFile(file: DescFile): void {
    const name = nameOf(file);
    if (files.has(name)) return;
    files.set(name, file);
    for (const message of file.messages) addMessage(message, file);
    for (const description of file.enums) symbols.set(description.typeName, file);
    for (const service of file.services) {
      symbols.set(service.typeName, file);
      for (const method of service.methods) symbols.set(`${service.typeName}.${method.name}`, file);
    }
    for (const extension of file.extensions) addExtension(extension, file);
    file.dependencies.forEach(addFile);
  }

  function addMessage(message: DescMessage, file: DescFile): void {
    symbols.set(message.typeName, file);
    for (const field of message.fields) symbols.set(`${message.typeName}.${field.name}`, file);
    for (const description of message.nestedEnums) symbols.set(description.typeName, file);
    for (const extension of message.nestedExtensions) addExtension(extension, file);
    for (const nested of message.nestedMessages) addMessage(nested, file);
  }

  function addExtension(extension: DescFile["extensions"][number], file: DescFile): void {
    symbols.set(extension.typeName, file);
    const numbers = extensions.get(extension.extendee.typeName) ?? new Map<number, DescFile>();
    extensions.set(extension.extendee.typeName, numbers.set(extension.number, file));
  }

  for (const service of services) addFile(service.file);
  return {
    services: services.map((service) => service.typeName).sort(),
    fileByName: (name) => files.get(name),
    fileOfSymbol: (symbol) => symbols.get(symbol),
    fileOfExtension: (extendee, number) => extensions.get(extendee)?.get(number),
    extensionNumbers(extendee) {
      const numbers = extensions.get(extendee);
      return numbers === undefined && !symbols.has(extendee) ? undefined : [...(numbers?.keys() ?? [])];
    },
  };
}

/** The import path, such as `holdfast/v1/task.proto`; `DescFile.name` lacks the extension. */
function nameOf(file: DescFile): string {
  return file.proto.name;
}
