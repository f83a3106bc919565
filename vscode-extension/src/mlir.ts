/** Reports whether an MLIR text has ops of StableHLO, and none of dmir's own dialect. */
export function holdsStableHLO(text: string): boolean {
  return /(^|[\s"=])((stablehlo|chlo)\.[a-z]|mhlo\.[a-z_0-9]+[" ]*[%("])/.test(text) && !/(^|[\s"=])dm\.[a-z]/.test(text);
}
