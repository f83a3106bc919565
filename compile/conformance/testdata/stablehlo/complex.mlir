// The functions of complex numbers, as NumPy computes them.
func.func @unary() {
  %x = stablehlo.constant dense<[(1.5, -2.5), (-3.0, 0.25), (0.0, 0.5), (-0.0, -0.001)]> : tensor<4xcomplex<f64>>
  %u0 = stablehlo.exponential %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u0, dense<[(-3.590476585567813, -2.6821660671324894), (0.04823930898218049, 0.012317517833885159), (0.8775825618903728, 0.479425538604203), (0.9999995000000417, -0.0009999998333333417)]> : tensor<4xcomplex<f64>>
  %u1 = stablehlo.exponential_minus_one %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u1, dense<[(-4.590476585567814, -2.6821660671324894), (-0.9517606910178195, 0.012317517833885159), (-0.1224174381096273, 0.479425538604203), (-4.999999583333347e-07, -0.0009999998333333417)]> : tensor<4xcomplex<f64>>
  %u2 = stablehlo.log %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u2, dense<[(1.0700330817481354, -1.0303768265243125), (1.1020725100903965, 3.058451421701352), (-0.6931471805599453, 1.5707963267948966), (-6.907755278982137, -1.5707963267948966)]> : tensor<4xcomplex<f64>>
  %u3 = stablehlo.log_plus_one %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u3, dense<[(1.2628643221541278, -0.7853981633974483), (0.7008992738279278, 3.017237659043032), (0.11157177565710492, 0.4636476090008061), (4.999997500588806e-07, -0.0009999996666668668)]> : tensor<4xcomplex<f64>>
  %u4 = stablehlo.sqrt %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u4, dense<[(1.4858458781822983, -0.8412716408576514), (0.07210632669216298, 1.7335510728989316), (0.5, 0.5), (0.022360679774997897, -0.022360679774997897)]> : tensor<4xcomplex<f64>>
  %u5 = stablehlo.rsqrt %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u5, dense<[(0.5096409316961854, 0.2885537922552081), (0.023952418002564847, -0.57585432279943), (1.0, -1.0), (22.360679774997898, 22.360679774997898)]> : tensor<4xcomplex<f64>>
  %u6 = stablehlo.cbrt %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u6, dense<[(1.34514014992199, -0.4810670722742521), (0.7563304481099566, 1.2299804803786294), (0.6873648184993014, 0.39685026299204984), (0.08660254037844389, -0.05)]> : tensor<4xcomplex<f64>>
  %u7 = stablehlo.sine %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u7, dense<[(6.116928012369312, -0.42797453450615125), (-0.145553024968058, -0.25008429818894123), (0.0, 0.5210953054937474), (-0.0, -0.001000000166666675)]> : tensor<4xcomplex<f64>>
  %u8 = stablehlo.cosine %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u8, dense<[(0.43378099760770306, 6.035048637766573), (-1.0210912297761832, 0.035648652183990444), (1.1276259652063807, -0.0), (1.0000005000000416, -0.0)]> : tensor<4xcomplex<f64>>
  %u9 = stablehlo.tan %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u9, dense<[(0.0019273435237456358, -1.0134287782038933), (0.1338327425151915, 0.24959107241921716), (0.0, 0.46211715726000974), (-0.0, -0.0009999996666667998)]> : tensor<4xcomplex<f64>>
  %u10 = stablehlo.tanh %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u10, dense<[(0.9677868021527741, 0.0926378362684199), (-0.995656017907301, 0.0023664441570039906), (0.0, 0.5463024898437905), (-0.0, -0.0010000003333334665)]> : tensor<4xcomplex<f64>>
  %u11 = stablehlo.logistic %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u11, dense<[(1.1863037852668916, -0.19289797630487535), (0.04615107240450855, 0.011208367283896075), (0.5, 0.12767096061051814), (0.5, -0.00025000002083333544)]> : tensor<4xcomplex<f64>>
  %u12 = stablehlo.negate %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u12, dense<[(-1.5, 2.5), (3.0, -0.25), (-0.0, -0.5), (0.0, 0.001)]> : tensor<4xcomplex<f64>>
  %u13 = stablehlo.sign %x : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u13, dense<[(0.5144957554275266, -0.8574929257125442), (-0.9965457582448797, 0.08304547985373997), (0.0, 1.0), (-0.0, -1.0)]> : tensor<4xcomplex<f64>>
  %u14 = chlo.asin %x : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u14, dense<[(0.5155484357349067, -1.7776623775066447), (-1.4826795045905576, 1.7668693026241513), (0.0, 0.48121182505960347), (-0.0, -0.0009999998333334083)]> : tensor<4xcomplex<f64>>
  %u15 = chlo.acos %x : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u15, dense<[(1.0552478910599898, 1.7776623775066447), (3.0534758313854544, -1.7668693026241513), (1.5707963267948966, -0.48121182505960347), (1.5707963267948966, 0.0009999998333334083)]> : tensor<4xcomplex<f64>>
  %u16 = chlo.atan %x : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u16, dense<[(1.380543138238714, -0.29251781316256364), (-1.2509114353815838, 0.024865198382659503), (0.0, 0.5493061443340549), (-0.0, -0.0010000003333335338)]> : tensor<4xcomplex<f64>>
  %u17 = chlo.sinh %x : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u17, dense<[(-1.7058586411644667, -1.4078516262453897), (-9.706443456311078, 2.490779438191711), (0.0, 0.479425538604203), (-0.0, -0.0009999998333333417)]> : tensor<4xcomplex<f64>>
  %u18 = chlo.cosh %x : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u18, dense<[(-1.8846179444033462, -1.2743144408870997), (9.754682765293257, -2.4784619203578266), (0.8775825618903728, 0.0), (0.9999995000000417, 0.0)]> : tensor<4xcomplex<f64>>
  %u19 = chlo.asinh %x : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u19, dense<[(1.7501487613175148, -1.0033627117332506), (-1.8214041607957312, 0.07891728019870327), (0.0, 0.5235987755982989), (-0.0, -0.0010000001666667418)]> : tensor<4xcomplex<f64>>
  %u20 = chlo.acosh %x : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u20, dense<[(1.7776623775066447, -1.0552478910599898), (1.7668693026241513, 3.0534758313854544), (0.48121182505960347, 1.5707963267948966), (0.0009999998333334083, -1.5707963267948966)]> : tensor<4xcomplex<f64>>
  %u21 = chlo.atanh %x : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u21, dense<[(0.163481616851666, -1.2767950250211129), (-0.34367220374989566, 1.5398282345194945), (0.0, 0.4636476090008061), (-0.0, -0.0009999996666668668)]> : tensor<4xcomplex<f64>>
  %u22 = chlo.conj %x : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u22, dense<[(1.5, 2.5), (-3.0, -0.25), (0.0, -0.5), (-0.0, 0.001)]> : tensor<4xcomplex<f64>>
  %u23 = chlo.square %x : tensor<4xcomplex<f64>> -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %u23, dense<[(-4.0, -7.5), (8.9375, -1.5), (-0.25, 0.0), (-1e-06, 0.0)]> : tensor<4xcomplex<f64>>
  %a = stablehlo.abs %x : (tensor<4xcomplex<f64>>) -> tensor<4xf64>
  check.expect_almost_eq_const %a, dense<[2.91547594742265, 3.0103986446980735, 0.5, 0.001]> : tensor<4xf64>
  return
}

func.func @binary() {
  %x = stablehlo.constant dense<[(1.5, -2.5), (-3.0, 0.25), (0.0, 0.5), (-0.0, -0.001)]> : tensor<4xcomplex<f64>>
  %y = stablehlo.constant dense<[(2.0, -1.0), (0.5, 0.5), (-1.0, 0.0), (3.0, 4.0)]> : tensor<4xcomplex<f64>>
  %add = stablehlo.add %x, %y : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %add, dense<[(3.5, -3.5), (-2.5, 0.75), (-1.0, 0.5), (3.0, 3.999)]> : tensor<4xcomplex<f64>>
  %subtract = stablehlo.subtract %x, %y : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %subtract, dense<[(-0.5, -1.5), (-3.5, -0.25), (1.0, 0.5), (-3.0, -4.001)]> : tensor<4xcomplex<f64>>
  %multiply = stablehlo.multiply %x, %y : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %multiply, dense<[(0.5, -6.5), (-1.625, -1.375), (-0.0, -0.5), (0.004, -0.003)]> : tensor<4xcomplex<f64>>
  %divide = stablehlo.divide %x, %y : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %divide, dense<[(1.1, -0.7000000000000001), (-2.75, 3.25), (-0.0, -0.5), (-0.00016, -0.00012)]> : tensor<4xcomplex<f64>>
  %power = stablehlo.power %x, %y : tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %power, dense<[(-3.0332387768300526, -0.03277820772618817), (-0.1833749906733949, 0.3282423176745603), (0.0, -2.0), (3.2121430298397895e-07, -4.284538302958326e-07)]> : tensor<4xcomplex<f64>>
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<4xcomplex<f64>>
  %huge = stablehlo.constant dense<(0x7FF0000000000000, 0.0)> : tensor<4xcomplex<f64>>
  %none = stablehlo.divide %x, %huge : tensor<4xcomplex<f64>>
  check.expect_almost_eq %none, %zero : tensor<4xcomplex<f64>>
  %power = stablehlo.power %zero, %zero : tensor<4xcomplex<f64>>
  check.expect_eq_const %power, dense<(1.0, 0.0)> : tensor<4xcomplex<f64>>
  %same = stablehlo.compare EQ, %x, %x : (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) -> tensor<4xi1>
  check.expect_eq_const %same, dense<true> : tensor<4xi1>
  %re = stablehlo.real %x : (tensor<4xcomplex<f64>>) -> tensor<4xf64>
  %im = stablehlo.imag %x : (tensor<4xcomplex<f64>>) -> tensor<4xf64>
  %again = stablehlo.complex %re, %im : tensor<4xcomplex<f64>>
  check.expect_eq %x, %again : tensor<4xcomplex<f64>>
  %wide = stablehlo.convert %re : (tensor<4xf64>) -> tensor<4xcomplex<f32>>
  %single = stablehlo.convert %x : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f32>>
  %part = stablehlo.convert %single : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %back = stablehlo.real %wide : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  check.expect_eq %part, %back : tensor<4xf32>
  return
}

// Bytes have the parts one after the other.
func.func @bytes() {
  %x = stablehlo.constant dense<"0x0000803F00000040000040400000803F"> : tensor<2xcomplex<f32>>
  check.expect_eq_const %x, dense<[(1.0, 2.0), (3.0, 1.0)]> : tensor<2xcomplex<f32>>
  %y = stablehlo.constant dense<"0x0000803F00000040"> : tensor<3xcomplex<f32>>
  check.expect_eq_const %y, dense<(1.0, 2.0)> : tensor<3xcomplex<f32>>
  return
}

// Products, reductions and elements that move.
func.func @tensors() {
  %a = stablehlo.constant dense<[[(1.0, 2.0), (2.0, -1.0), (0.0, 0.5)], [(3.0, 0.0), (-1.0, 1.0), (2.0, 2.0)]]> : tensor<2x3xcomplex<f64>>
  %b = stablehlo.constant dense<[[(1.0, -1.0), (0.0, 2.0)], [(0.0, 1.0), (1.0, 0.0)], [(2.0, 0.0), (-1.0, -1.0)]]> : tensor<3x2xcomplex<f64>>
  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x3xcomplex<f64>>, tensor<3x2xcomplex<f64>>) -> tensor<2x2xcomplex<f64>>
  check.expect_almost_eq_const %p, dense<[[(4.0, 4.0), (-1.5, 0.5)], [(6.0, 0.0), (-1.0, 3.0)]]> : tensor<2x2xcomplex<f64>>
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f64>>
  %one = stablehlo.constant dense<(1.0, 0.0)> : tensor<complex<f64>>
  %s = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<2x3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<2xcomplex<f64>>
  check.expect_almost_eq_const %s, dense<[(3.0, 1.5), (4.0, 3.0)]> : tensor<2xcomplex<f64>>
  %m = stablehlo.reduce(%a init: %one) applies stablehlo.multiply across dimensions = [1] : (tensor<2x3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<2xcomplex<f64>>
  check.expect_almost_eq_const %m, dense<[(-1.5, 2.0), (-12.0, 0.0)]> : tensor<2xcomplex<f64>>
  %q = stablehlo.reduce(%a init: %one) across dimensions = [0] : (tensor<2x3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<3xcomplex<f64>>
   reducer(%l: tensor<complex<f64>>, %r: tensor<complex<f64>>) {
    %t = stablehlo.multiply %l, %r : tensor<complex<f64>>
    stablehlo.return %t : tensor<complex<f64>>
  }
  check.expect_almost_eq_const %q, dense<[(3.0, 6.0), (-1.0, 3.0), (-1.0, 1.0)]> : tensor<3xcomplex<f64>>
  %w = "stablehlo.reduce_window"(%a, %one) ({
  ^bb0(%l: tensor<complex<f64>>, %r: tensor<complex<f64>>):
    %t = stablehlo.multiply %l, %r : tensor<complex<f64>>
    stablehlo.return %t : tensor<complex<f64>>
  }) {window_dimensions = array<i64: 1, 2>} : (tensor<2x3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<2x2xcomplex<f64>>
  check.expect_almost_eq_const %w, dense<[[(4.0, 3.0), (0.5, 1.0)], [(-3.0, 3.0), (-4.0, 0.0)]]> : tensor<2x2xcomplex<f64>>
  %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xcomplex<f64>>) -> tensor<3x2xcomplex<f64>>
  %c = stablehlo.concatenate %t, %b, dim = 1 : (tensor<3x2xcomplex<f64>>, tensor<3x2xcomplex<f64>>) -> tensor<3x4xcomplex<f64>>
  %d = stablehlo.slice %c [0:3:2, 1:3] : (tensor<3x4xcomplex<f64>>) -> tensor<2x2xcomplex<f64>>
  check.expect_almost_eq_const %d, dense<[[(3.0, 0.0), (1.0, -1.0)], [(2.0, 2.0), (2.0, 0.0)]]> : tensor<2x2xcomplex<f64>>
  %i = stablehlo.constant dense<[[1], [1]]> : tensor<2x1xi64>
  %u = stablehlo.constant dense<[[(1.0, 1.0), (2.0, 0.0)], [(0.0, 1.0), (1.0, -1.0)]]> : tensor<2x2xcomplex<f64>>
  %at = "stablehlo.scatter"(%b, %i, %u) ({
  ^bb0(%l: tensor<complex<f64>>, %r: tensor<complex<f64>>):
    %k = stablehlo.add %l, %r : tensor<complex<f64>>
    stablehlo.return %k : tensor<complex<f64>>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>} : (tensor<3x2xcomplex<f64>>, tensor<2x1xi64>, tensor<2x2xcomplex<f64>>) -> tensor<3x2xcomplex<f64>>
  check.expect_almost_eq_const %at, dense<[[(1.0, -1.0), (0.0, 2.0)], [(1.0, 3.0), (4.0, -1.0)], [(2.0, 0.0), (-1.0, -1.0)]]> : tensor<3x2xcomplex<f64>>
  return
}

// Loops and branches carry them, functions take and return them.
func.func private @square(%z: tensor<2xcomplex<f64>>) -> tensor<2xcomplex<f64>> {
  %s = stablehlo.multiply %z, %z : tensor<2xcomplex<f64>>
  return %s : tensor<2xcomplex<f64>>
}
func.func @control() {
  %z = stablehlo.constant dense<[(0.5, 0.5), (1.0, -1.0)]> : tensor<2xcomplex<f64>>
  %n = stablehlo.constant dense<0> : tensor<i64>
  %one = stablehlo.constant dense<1> : tensor<i64>
  %three = stablehlo.constant dense<3> : tensor<i64>
  %r:2 = stablehlo.while(%i = %n, %v = %z) : tensor<i64>, tensor<2xcomplex<f64>>
    cond {
    %p = stablehlo.compare LT, %i, %three : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i64>
    %s = func.call @square(%v) : (tensor<2xcomplex<f64>>) -> tensor<2xcomplex<f64>>
    %t = stablehlo.add %s, %z : tensor<2xcomplex<f64>>
    stablehlo.return %next, %t : tensor<i64>, tensor<2xcomplex<f64>>
  }
  check.expect_almost_eq_const %r#1, dense<[(-1.6875, -0.25), (1.0, 97.0)]> : tensor<2xcomplex<f64>>
  %branch = stablehlo.constant dense<1> : tensor<i32>
  %b = "stablehlo.case"(%branch) ({
    stablehlo.return %z : tensor<2xcomplex<f64>>
  }, {
    %s = stablehlo.negate %z : tensor<2xcomplex<f64>>
    stablehlo.return %s : tensor<2xcomplex<f64>>
  }) : (tensor<i32>) -> tensor<2xcomplex<f64>>
  check.expect_almost_eq_const %b, dense<[(-0.5, -0.5), (-1.0, 1.0)]> : tensor<2xcomplex<f64>>
  return
}

// Sorted by the real part, then by the imaginary one.
func.func @sorted() {
  %v = stablehlo.constant dense<[(2.0, 1.0), (1.0, 5.0), (2.0, -1.0), (1.0, 1.0)]> : tensor<4xcomplex<f64>>
  %s = "stablehlo.sort"(%v) ({
  ^bb0(%l: tensor<complex<f64>>, %r: tensor<complex<f64>>):
    %lr = stablehlo.real %l : (tensor<complex<f64>>) -> tensor<f64>
    %rr = stablehlo.real %r : (tensor<complex<f64>>) -> tensor<f64>
    %li = stablehlo.imag %l : (tensor<complex<f64>>) -> tensor<f64>
    %ri = stablehlo.imag %r : (tensor<complex<f64>>) -> tensor<f64>
    %a = stablehlo.compare LT, %lr, %rr : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %b = stablehlo.compare EQ, %lr, %rr : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %c = stablehlo.compare LT, %li, %ri : (tensor<f64>, tensor<f64>) -> tensor<i1>
    %d = stablehlo.and %b, %c : tensor<i1>
    %e = stablehlo.or %a, %d : tensor<i1>
    stablehlo.return %e : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  check.expect_almost_eq_const %s, dense<[(1.0, 1.0), (1.0, 5.0), (2.0, -1.0), (2.0, 1.0)]> : tensor<4xcomplex<f64>>
  return
}

func.func @counted() {
  %i = stablehlo.iota dim = 0 : tensor<3xcomplex<f32>>
  check.expect_eq_const %i, dense<[(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)]> : tensor<3xcomplex<f32>>
  %y = stablehlo.constant dense<[(1.0, 0.0), (0.0, 0.5), (2.0, 1.0)]> : tensor<3xcomplex<f64>>
  %x = stablehlo.constant dense<[(1.0, 0.0), (1.0, 0.0), (1.0, -1.0)]> : tensor<3xcomplex<f64>>
  %a = stablehlo.atan2 %y, %x : tensor<3xcomplex<f64>>
  check.expect_almost_eq_const %a, dense<[(0.7853981633974483, 0.0), (0.0, 0.5493061443340549), (1.2767950250211129, 0.6412373393653843)]> : tensor<3xcomplex<f64>>
  return
}
