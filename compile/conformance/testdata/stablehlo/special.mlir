// Functions that are series, beside their values to 17 digits.
func.func @bessel() {
  %0 = stablehlo.constant dense<[0.0, 0.5, -3.0, 8.0, 8.5, -40.0, 10000.0]> : tensor<7xf64>
  %r = chlo.bessel_i1e %0 : tensor<7xf64> -> tensor<7xf64>
  check.expect_almost_eq_const %r, dense<[0.0, 0.1564208031848717, -0.19682671329730085, 0.13414249329269818, 0.13054935509459586, -0.062482229074442061, 0.0039892731959836623]> : tensor<7xf64> {tolerance = 1.0e-13 : f64}
  return
}

func.func @zeta() {
  %0 = stablehlo.constant dense<[2.0, 1.0625, 3.5, 12.0, 1.0, 0.5, 3.0]> : tensor<7xf64>
  %1 = stablehlo.constant dense<[1.0, 0.25, 7.5, 2.0, 3.0, 3.0, -2.0]> : tensor<7xf64>
  %r = chlo.zeta %0, %1 : tensor<7xf64>, tensor<7xf64> -> tensor<7xf64>
  check.expect_almost_eq_const %r, dense<[1.6449340668482264, 20.587776100280804, 0.0030627969326974213, 0.0002460865533080483, 0x7FF0000000000000, 0x7FF8000000000000, 0x7FF0000000000000]> : tensor<7xf64> {tolerance = 1.0e-13 : f64}
  return
}

func.func @polygamma() {
  %0 = stablehlo.constant dense<[0.0, 1.0, 2.0, 3.0, 1.5]> : tensor<5xf64>
  %1 = stablehlo.constant dense<[2.5, 1.0, 0.75, 4.0, 2.0]> : tensor<5xf64>
  %r = chlo.polygamma %0, %1 : tensor<5xf64>, tensor<5xf64> -> tensor<5xf64>
  check.expect_almost_eq_const %r, dense<[0.70315664064524319, 1.6449340668482264, -5.3026332163376396, 0.044865328192755075, 0x7FF8000000000000]> : tensor<5xf64> {tolerance = 1.0e-13 : f64}
  return
}

func.func @next_after() {
  %x = stablehlo.constant dense<[0.0, 1.0, 1.0, -1.0, 2.0, 0x7C00]> : tensor<6xf16>
  %y = stablehlo.constant dense<[-1.0, 2.0, 0.0, 0.0, 2.0, 0.0]> : tensor<6xf16>
  %r = chlo.next_after %x, %y : tensor<6xf16>, tensor<6xf16> -> tensor<6xf16>
  check.expect_eq_const %r, dense<[0x8001, 0x3C01, 0x3BFF, 0xBBFF, 0x4000, 0x7BFF]> : tensor<6xf16>
  return
}
