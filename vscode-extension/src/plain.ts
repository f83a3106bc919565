/**
 * The text of a notification without links. VS Code turns `[text](command:…)` into a link that runs a command, and names of
 * programs may contain that.
 */
export function plain(text: string): string {
  return text.replaceAll("](", "] (");
}
