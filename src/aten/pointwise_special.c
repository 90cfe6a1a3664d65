// Special functions of one value: Chebyshev expansions on a few intervals, joined by selects. The
// coefficients were computed to 40 digits from the functions' definitions; `x`, `t` and the factor
// in front are given beside each use.
#include <math.h>

#include "aten/emit.h"
#include "aten/pointwise_params.h"

#define U(name, cls, fn) tt_value_t fn(tt_build_t *b, tt_value_t x);
TT_SPECIAL_UNARIES(U)
#undef U

// clang-format off
static const double i0e_near[] = {
    0.33839763720473803, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764,
    0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576,
    0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05,
    1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07,
    6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10,
    9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13,
    7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16,
    3.3307945188222384e-17, -4.4153416464793395e-18};
static const double i0e_far[] = {
    0.4022452055070544, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06,
    2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10,
    1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11,
    -1.7941785315068062e-12, 7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14,
    -4.150569347287222e-14, -9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15,
    -3.425485619677219e-16, -2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17,
    -4.830504485944182e-18, -7.233180487874754e-18};
static const double i1e_near[] = {
    0.12629359322181682, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499,
    0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532,
    0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05,
    3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08,
    9.381537386495773e-09, -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11,
    1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14,
    7.600684294735408e-15, -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17,
    2.7779141127610464e-18};
static const double i1e_far[] = {
    0.38928811750914005, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06,
    -2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10,
    -1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12,
    -7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14,
    1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15,
    3.3082023109209285e-16, 2.96262899764595e-16, -3.209525921993424e-17, -4.6503053684893586e-17,
    4.414348323071708e-18, 7.517296310842105e-18};
static const double k0_near[] = {
    -0.2676636966169514, 0.3442898999246285, 0.0359799365153615, 0.001264615411446926,
    2.286212103119452e-05, 2.5347910790261494e-07, 1.904516377220209e-09, 1.0349695257633625e-11,
    4.2598161427910826e-14, 1.3744654358807508e-16};
static const double k1_near[] = {
    0.7626501136694739, -0.3531559607765449, -0.12261118082265715, -0.006975723859639864,
    -0.0001730288957513052, -2.4334061415659684e-06, -2.213387630734726e-08,
    -1.4114883926335278e-10, -6.666901694199329e-13, -2.427449850519366e-15};
static const double k0_far[] = {
    1.2201515410329777, -0.0314481013119645, 0.0015698838857300533, -0.00012849549581627802,
    1.39498137188765e-05, -1.8317555227191195e-06, 2.766813639445015e-07, -4.660489897687948e-08,
    8.574034017414225e-09, -1.6975345093890614e-09, 3.5773972814003283e-10, -7.957489244477396e-11,
    1.8559491149549264e-11, -4.514597883374519e-12, 1.1403405882073441e-12, -2.9800969231481784e-13,
    8.032890775068375e-14, -2.2275133267462965e-14, 6.340076476276646e-15, -1.848593377920907e-15,
    5.5120559994043335e-16, -1.6782311257549006e-16, 5.2103917776435543e-17,
    -1.6475805939842632e-17};
static const double k1_far[] = {
    1.3603130952422213, 0.10392373657681724, -0.002857816859622779, 0.00019521551847135162,
    -1.936197974166083e-05, 2.406484947837217e-06, -3.5019606030878126e-07, 5.7410841254500495e-08,
    -1.0345762465678097e-08, 2.0150497551970347e-09, -4.1903547593419254e-10, 9.218315187605315e-11,
    -2.129967838427791e-11, 5.139639673482343e-12, -1.2891739609498229e-12, 3.348419666052243e-13,
    -8.976705182010146e-14, 2.4771544242195988e-14, -7.0198370892147685e-15, 2.038703166239861e-15,
    -6.057047270643018e-16, 1.8380935752430455e-16, -5.689462849193648e-17, 1.7940510478863572e-17};
static const double j0_near[] = {
    0.15772797147489012, -0.008723442352852221, 0.2651786132033368, -0.37009499387264977,
    0.15806710233209725, -0.034893769411408884, 0.004819180069467605, -0.00046062616620627504,
    3.246032882100508e-05, -1.7619469077621507e-06, 7.608163592418782e-08, -2.679253530557673e-09,
    7.848696314479465e-11, -1.9438346867370164e-12, 4.125320595634374e-14, -7.588508125447546e-16,
    1.2218515873961411e-17};
static const double j1_near[] = {
    0.08104484632565812, -0.1489751450676521, 0.1609992623572097, -0.08268049176681791,
    0.022213639654966037, -0.003646940600769276, 0.0004050337728354822, -3.255554866857259e-05,
    1.9858774049915165e-06, -9.521984756750436e-08, 3.687133759097148e-09, -1.178026622695885e-10,
    3.160154580348003e-12, -7.221755239651773e-14, 1.4232144003513942e-15, -2.4441972916190464e-17};
static const double y0_near[] = {
    -0.03314611320328494, -0.2744743055297453, 0.17903431407718265, 0.26156734625504663,
    -0.17730201278114358, 0.04719668959576339, -0.007287962479552079, 0.0007531135932577742,
    -5.632079141056987e-05, 3.206532537654801e-06, -1.44072332740187e-07, 5.248794787330516e-09,
    -1.5837552541812015e-10, 4.02633081830612e-12, -8.747341203310769e-14, 1.6434898714919468e-15,
    -2.6977881152566837e-17};
static const double y1_near[] = {
    0.0025380132357417816, -0.01608717304766875, -0.09591204536083074, 0.08445197259652346,
    -0.028328123944594365, 0.005289897544167113, -0.0006414551451326356, 5.505982873338744e-05,
    -3.53808001868935e-06, 1.7707804556154404e-07, -7.11055004989928e-09, 2.344337905911516e-10,
    -6.4651518414115946e-12, 1.51429151205002e-13, -3.0511859694473254e-15, 5.34668038572867e-17};
static const double p0_far[] = {
    0.9994603493475187, -0.0005365220468132117, 3.0751847875194745e-06, -5.1705945376060975e-08,
    1.6306464635151382e-09, -7.86409137723707e-11, 5.168262387349193e-12, -4.3045788699253914e-13,
    4.3265957431549404e-14, -5.069034095935236e-15, 6.748072215733873e-16, -1.0011513723467786e-16,
    1.6305919233744186e-17};
static const double q0_far[] = {
    -0.12444683684269607, 0.0005470815954089319, -5.9315987288485175e-06, 1.4377965798375193e-07,
    -5.817532749493056e-09, 3.376097523734991e-10, -2.565397936797308e-11, 2.404916100281365e-12,
    -2.6690625482579414e-13, 3.4041800321963686e-14, -4.87994410531204e-15, 7.729703176242605e-16,
    -1.3348852171502517e-16, 2.4865952389390515e-17, -4.952892629886516e-18};
static const double p1_far[] = {
    1.0009030408600137, 0.0008989898330859408, -3.987284300488908e-06, 6.177633960644299e-08,
    -1.8718907491063067e-09, 8.816898659582339e-11, -5.704863640395645e-12, 4.699195515230542e-13,
    -4.6842237839904895e-14, 5.452674896044717e-15, -7.221180842274018e-16, 1.0667689114335412e-16,
    -1.7312313216116335e-17};
static const double q1_far[] = {
    0.3742222965562826, -0.0007702178839325664, 7.3108922063643636e-06, -1.676782510726674e-07,
    6.583354662120443e-09, -3.749090950541556e-10, 2.8121750359748866e-11, -2.61145253946232e-12,
    2.8774212663332235e-13, -3.649001916061838e-14, 5.206626366226707e-15, -8.215318025458595e-16,
    1.4141084390211833e-16, -2.626761589838529e-17, 5.2192649196714085e-18};
static const double erfcx_terms[] = {
    1.1775789345674017, -0.004590054580646478, -0.08424913336651792, 0.05920993999819189,
    -0.026658668435305753, 0.009074997670705265, -0.002413163540417608, 0.0004907758365258086,
    -6.916973302501207e-05, 4.13902798607301e-06, 7.74038306619849e-07, -2.1886401049234397e-07,
    1.076499946567091e-08, 4.521959811218287e-09, -7.754400208831351e-10, -6.318088340886684e-11,
    2.86879501093067e-11, 1.9455868545777347e-13, -9.65469674843344e-13, 3.25254814814874e-14,
    3.3478119482868056e-14, -1.864562880419313e-15, -1.2507950530688646e-15, 7.418235256624051e-17,
    5.068148904796119e-17};
static const double erfinv_near[] = {
    1.6304220989459326, 0.7315674456742257, -0.021235032142504585, -0.0065808875424494635,
    0.0019488711426908524, -0.00014158343386374536, -4.9292864636180004e-05, 1.4752887929042498e-05,
    -6.111918603258194e-07, -5.106997335480761e-07, 1.159027723297735e-07, 1.4907998843194937e-09,
    -5.244776785530681e-09, 8.51790549109762e-10, 7.917020592973908e-11, -5.0994281737154326e-11,
    5.436227530231317e-12, 1.292282189751795e-12, -4.656064719044143e-13, 2.4256976317675218e-14,
    1.6403697972051414e-14, -3.94956069090147e-15, -3.9036001761416307e-17, 1.83129083527959e-16,
    -3.03580260263594e-17};
static const double erfinv_middle[] = {
    3.085744844023102, 0.7524837268921277, 0.0019842584172056767, -0.000534561900101604,
    0.0001302806745904227, -2.943377534710642e-05, 5.231051543788091e-06, -5.385189635316591e-07,
    -2.922686732135409e-08, 2.3903569231251557e-08, -4.411209869554094e-09, 2.2053622855049448e-10,
    8.095391923249493e-11, -2.1642011149793333e-11, 1.9364299208504444e-12, 1.9183918173325102e-13,
    -8.245551635697369e-14, 1.0402388222104601e-14, 2.9484539267546553e-17, -2.4669496593190295e-16,
    4.5962728850225956e-17};
static const double erfinv_far[] = {
    15.65396421284016, 11.79817992929954, -0.012848428633379453, 0.003121159797376052,
    -0.0005138898924959336, -8.347278808155557e-05, 0.00015218009340693656, -0.00011090837452915147,
    6.572346189815333e-05, -3.546889978363304e-05, 1.8142677650273264e-05, -8.961518507919712e-06,
    4.318464519845358e-06, -2.043121469523221e-06, 9.532555846624051e-07, -4.4023863857733185e-07,
    2.0202758810965723e-07, -9.258421899103799e-08, 4.2679589709036074e-08, -2.000747035170686e-08,
    9.685956107391202e-09, -4.934091103217776e-09, 2.690301843243875e-09, -1.5822679913089501e-09,
    9.97594266359884e-10, -6.629017270180378e-10, 4.550270684791451e-10, -3.170938113626345e-10,
    2.215152626391876e-10, -1.5380739764870913e-10, 1.0554402910976042e-10, -7.128990802049979e-11,
    4.724730915678459e-11, -3.063357261043844e-11, 1.9368666701048968e-11, -1.1895352863667521e-11,
    7.058745990746014e-12, -4.015825990040195e-12, 2.1632925132922464e-12, -1.0790670580500174e-12,
    4.751950085791708e-13, -1.6062906958184313e-13, 1.2522468551814515e-14, 4.532697134134326e-14,
    -5.820639756082689e-14, 5.162324451881945e-14, -3.893656271514226e-14, 2.6404830082069275e-14,
    -1.6394246847916922e-14, 9.324640240539673e-15, -4.783098547287097e-15, 2.1132518883248884e-15,
    -6.91580441196455e-16, 2.940055532316382e-17, 2.131286353611864e-16, -2.5049900305816106e-16,
    2.0571463353306293e-16};
static const double airy_middle[] = {
    0.07981034257083895, 0.13358598577835648, -0.12888154225314424, -0.08776265494035469,
    -0.11786513948317262, 0.2494019918868029, -0.035635245648797415, -0.12552960424978643,
    0.07658320862153278, 0.006539826099616935, -0.023099786059506074, 0.0075040528747347115,
    0.0017030155672010565, -0.001847967273977794, 0.0003517624295647609, 0.00013635466079863891,
    -8.308790360342944e-05, 8.894157813861605e-06, 5.884144160957906e-06, -2.388680332415851e-06,
    1.1078940909561706e-07, 1.625312951027347e-07, -4.7480935940319924e-08, -1.754949228512617e-10,
    3.144514394466578e-09, -6.872528750687637e-10, -3.432139716305899e-11, 4.5120269871187276e-11,
    -7.505023274955363e-12, -7.320391388335262e-13, 4.998060740578426e-13, -6.330395765884145e-14,
    -9.638462850616974e-15, 4.403519218800548e-15, -4.1759243545597107e-16, -9.31695346064716e-17,
    3.1579001128543586e-17};
static const double airy_far[] = {
    0.9844053049171552, -0.014792784850104199, 0.0007327177465426715, -6.12595423417825e-05,
    6.83476697557269e-06, -9.237229735403982e-07, 1.436225340438052e-07, -2.489319422322096e-08,
    4.709793440054328e-09, -9.583863708112733e-10, 2.0745855483677591e-10, -4.737267332192277e-11,
    1.1336099808224236e-11, -2.827706782319351e-12, 7.320712095125598e-13, -1.9599793911089723e-13,
    5.4101162570683925e-14, -1.5356466802223836e-14, 4.472340393300025e-15, -1.3338094674756683e-15,
    4.066582046456231e-16, -1.265583225645289e-16, 4.015126334015871e-17, -1.2969972135960937e-17};
static const double airy_p[] = {
    0.9998088477395531, -0.00019041677962134863, 7.267968168417445e-07, -8.485426967529796e-09,
    1.9144545982950886e-10, -6.778493941405162e-12, 3.345666079656652e-13, -2.1345137724465704e-14,
    1.6718079441151791e-15, -1.5491724858625586e-16, 1.6524273492513008e-17};
static const double airy_q[] = {
    0.06925101122700861, -0.00019199395713168297, 1.4144485007348916e-06, -2.4076418454371364e-08,
    7.033135474188027e-10, -3.0199171290130837e-11, 1.73483636560491e-12, -1.2527799137757002e-13,
    1.0886384509119664e-14, -1.1026771285105438e-15, 1.2709996936013433e-16,
    -1.6365087007659018e-17, 2.3195560389025733e-18};
// clang-format on

#define CHEBYSHEV(b, t, name) \
  tt__chebyshev((b), (t), (name), (uint32_t)(sizeof(name) / sizeof *(name)))

// a x + c
static tt_value_t affine(tt_build_t *b, tt_value_t x, double a, double c) {
  return tt__addc(b, tt__mulc(b, x, a), c);
}
// x where it is above `limit`, else the limit: keeps the branch not taken finite.
static tt_value_t at_least(tt_build_t *b, tt_value_t x, double limit) {
  return tt__max(b, x, tt__num(b, x, limit));
}
static tt_value_t at_most(tt_build_t *b, tt_value_t x, double limit) {
  return tt__min(b, x, tt__num(b, x, limit));
}
static tt_value_t nan_through(tt_build_t *b, tt_value_t x, tt_value_t r) {
  return tt__select(b, tt__isnan(b, x), x, r);
}

// --- error functions, gamma ----------------------------------------------------------------------
tt_value_t tt__erfc(tt_build_t *b, tt_value_t x) { return tt_emit_unary(b, TT_OP_ERFC, x); }
tt_value_t tt__erfinv(tt_build_t *b, tt_value_t x) { return tt_emit_unary(b, TT_OP_ERF_INV, x); }
tt_value_t tt__lgamma(tt_build_t *b, tt_value_t x) { return tt_emit_unary(b, TT_OP_LGAMMA, x); }
// The pole at zero has zero's sign.
tt_value_t tt__digamma(tt_build_t *b, tt_value_t x) {
  tt_value_t pole = tt__copysign(b, tt__num(b, x, INFINITY), tt__neg(b, x));
  return tt__select(b, tt__cmpc(b, TT_EQ, x, 0), pole, tt_emit_unary(b, TT_OP_DIGAMMA, x));
}

// exp(x^2) erfc(x); t = (x - 3.75) / (x + 3.75), factor 1 / (1 + 2 x). Reflected for x < 0.
tt_value_t tt__erfcx(tt_build_t *b, tt_value_t x) {
  tt_value_t a = tt__abs(b, x);
  tt_value_t t = tt__rsubc(b, 1, tt__rdivc(b, 7.5, tt__addc(b, a, 3.75)));
  tt_value_t r = tt__div(b, CHEBYSHEV(b, t, erfcx_terms), affine(b, a, 2, 1));
  tt_value_t left = tt__sub(b, tt__mulc(b, tt__exp(b, tt__square(b, x)), 2), r);
  return tt__select(b, tt__cmpc(b, TT_LT, x, 0), left, r);
}

// Far out, by way of erfcx, so that nothing underflows.
tt_value_t tt__log_ndtr(tt_build_t *b, tt_value_t x) {
  tt_value_t t = tt__mulc(b, x, M_SQRT1_2);
  tt_value_t tail =
      tt__sub(b, tt__log(b, tt__mulc(b, tt__erfcx(b, tt__neg(b, t)), 0.5)), tt__square(b, t));
  tt_value_t body = tt__log1p(b, tt__mulc(b, tt__erfc(b, t), -0.5));
  return tt__select(b, tt__cmpc(b, TT_LT, x, -1), tail, body);
}

// sqrt(2) erfinv(2 p - 1), with w = -log(1 - (2 p - 1)^2) taken from 4 p (1 - p): nothing cancels.
tt_value_t tt__ndtri(tt_build_t *b, tt_value_t p) {
  tt_value_t q = tt__rsubc(b, 1, p), y = tt__sub(b, p, q);
  tt_value_t w = tt__neg(b, tt__add(b, tt__log(b, tt__mulc(b, p, 4)), tt__log(b, q)));
  tt_value_t root = tt__sqrt(b, at_least(b, w, 6.25));
  tt_value_t near = CHEBYSHEV(b, affine(b, at_most(b, w, 6.25), 1 / 3.125, -1), erfinv_near);
  tt_value_t middle =
      CHEBYSHEV(b, affine(b, at_most(b, root, 4), 1 / 0.75, -3.25 / 0.75), erfinv_middle);
  tt_value_t far = CHEBYSHEV(
      b, affine(b, at_most(b, at_least(b, root, 4), 27.5), 2 / 23.5, -8 / 23.5 - 1), erfinv_far);
  tt_value_t r = tt__select(b, tt__cmpc(b, TT_LT, root, 4), middle, far);
  r = tt__select(b, tt__cmpc(b, TT_LT, w, 6.25), near, r);
  r = tt__mulc(b, tt__mul(b, r, y), M_SQRT2);
  r = tt__select_yes(b, tt__cmpc(b, TT_EQ, p, 0), -INFINITY, r);
  r = tt__select_yes(b, tt__cmpc(b, TT_EQ, p, 1), INFINITY, r);
  tt_value_t inside = tt__and(b, tt__cmpc(b, TT_GE, p, 0), tt__cmpc(b, TT_LE, p, 1));
  return tt__select_no(b, inside, r, NAN);
}

// --- modified Bessel functions -------------------------------------------------------------------

// exp(-x) I0(x): t = x / 4 - 1 up to 8; then t = 16 / x - 1, factor 1 / sqrt(x).
tt_value_t tt__i0e(tt_build_t *b, tt_value_t x) {
  tt_value_t a = tt__abs(b, x), far_a = at_least(b, a, 8);
  tt_value_t near = CHEBYSHEV(b, affine(b, at_most(b, a, 8), 0.25, -1), i0e_near);
  tt_value_t far = CHEBYSHEV(b, tt__addc(b, tt__rdivc(b, 16, far_a), -1), i0e_far);
  far = tt__div(b, far, tt__sqrt(b, far_a));
  return tt__select(b, tt__cmpc(b, TT_LE, a, 8), near, far);
}
tt_value_t tt__i0(tt_build_t *b, tt_value_t x) {
  return tt__mul(b, tt__exp(b, tt__abs(b, x)), tt__i0e(b, x));
}
tt_value_t tt__i1e(tt_build_t *b, tt_value_t x) {
  tt_value_t a = tt__abs(b, x), far_a = at_least(b, a, 8);
  tt_value_t near = CHEBYSHEV(b, affine(b, at_most(b, a, 8), 0.25, -1), i1e_near);
  tt_value_t far = CHEBYSHEV(b, tt__addc(b, tt__rdivc(b, 16, far_a), -1), i1e_far);
  far = tt__div(b, far, tt__sqrt(b, far_a));
  tt_value_t r = tt__select(b, tt__cmpc(b, TT_LE, a, 8), tt__mul(b, near, a), far);
  return tt__select(b, tt__cmpc(b, TT_LT, x, 0), tt__neg(b, r), r);
}
tt_value_t tt__i1(tt_build_t *b, tt_value_t x) {
  return tt__mul(b, tt__exp(b, tt__abs(b, x)), tt__i1e(b, x));
}

// K0 and K1 up to 2: a logarithm times I plus t = x^2 / 2 - 1; then t = 4 / x - 1, factor
// exp(-x) / sqrt(x). `scaled` leaves the exponential out.
static tt_value_t bessel_k(tt_build_t *b, tt_value_t x, int order, bool scaled) {
  tt_value_t low = at_most(b, x, 2), high = at_least(b, x, 2);
  tt_value_t t = tt__addc(b, tt__mulc(b, tt__square(b, low), 0.5), -1);
  tt_value_t log_half = tt__log(b, tt__mulc(b, low, 0.5)), near;
  if (order == 0) {
    near = tt__sub(b, CHEBYSHEV(b, t, k0_near), tt__mul(b, log_half, tt__i0(b, low)));
  } else {
    near = tt__div(b, CHEBYSHEV(b, t, k1_near), low);
    near = tt__add(b, near, tt__mul(b, log_half, tt__i1(b, low)));
  }
  tt_value_t s = tt__addc(b, tt__rdivc(b, 4, high), -1);
  tt_value_t far = order == 0 ? CHEBYSHEV(b, s, k0_far) : CHEBYSHEV(b, s, k1_far);
  far = tt__div(b, far, tt__sqrt(b, high));
  if (scaled) {
    near = tt__mul(b, near, tt__exp(b, low));
  } else {
    far = tt__mul(b, far, tt__exp(b, tt__neg(b, high)));
  }
  tt_value_t r = tt__select(b, tt__cmpc(b, TT_LE, x, 2), near, far);
  r = tt__select_yes(b, tt__cmpc(b, TT_EQ, x, 0), INFINITY, r);
  return nan_through(b, x, tt__select_yes(b, tt__cmpc(b, TT_LT, x, 0), NAN, r));
}
tt_value_t tt__bessel_k0(tt_build_t *b, tt_value_t x) { return bessel_k(b, x, 0, false); }
tt_value_t tt__bessel_k1(tt_build_t *b, tt_value_t x) { return bessel_k(b, x, 1, false); }
tt_value_t tt__bessel_k0e(tt_build_t *b, tt_value_t x) { return bessel_k(b, x, 0, true); }
tt_value_t tt__bessel_k1e(tt_build_t *b, tt_value_t x) { return bessel_k(b, x, 1, true); }

// --- Bessel functions ----------------------------------------------------------------------------

// Up to 8: t = x^2 / 32 - 1. Beyond: sqrt(2 / (pi x)) times (P cos - Q sin) or (P sin + Q cos) of x
// - (2 order + 1) pi / 4, where P and Q x have t = 2 (8 / x)^2 - 1.
static tt_value_t near_t(tt_build_t *b, tt_value_t a) {
  return affine(b, tt__square(b, at_most(b, a, 8)), 1.0 / 32, -1);
}
static tt_value_t bessel_far(tt_build_t *b, tt_value_t a, int order, bool second) {
  a = at_most(b, at_least(b, a, 8), 1e30);
  tt_value_t t = affine(b, tt__square(b, tt__rdivc(b, 8, a)), 2, -1);
  tt_value_t p = order ? CHEBYSHEV(b, t, p1_far) : CHEBYSHEV(b, t, p0_far);
  tt_value_t q = order ? CHEBYSHEV(b, t, q1_far) : CHEBYSHEV(b, t, q0_far);
  q = tt__div(b, q, a);
  tt_value_t angle = tt__addc(b, a, -(2 * order + 1) * M_PI_4);
  tt_value_t c = tt__cos(b, angle), s = tt__sin(b, angle);
  tt_value_t wave = second ? tt__add(b, tt__mul(b, p, s), tt__mul(b, q, c))
                           : tt__sub(b, tt__mul(b, p, c), tt__mul(b, q, s));
  return tt__mul(b, wave, tt__sqrt(b, tt__rdivc(b, M_2_PI, a)));
}
static tt_value_t joined(tt_build_t *b, tt_value_t x, tt_value_t a, tt_value_t near,
                         tt_value_t far) {
  tt_value_t r = tt__select(b, tt__cmpc(b, TT_LE, a, 8), near, far);
  return nan_through(b, x, tt__select_yes(b, tt__cmpc(b, TT_EQ, a, INFINITY), 0, r));
}

tt_value_t tt__bessel_j0(tt_build_t *b, tt_value_t x) {
  tt_value_t a = tt__abs(b, x);
  return joined(b, x, a, CHEBYSHEV(b, near_t(b, a), j0_near), bessel_far(b, a, 0, false));
}
tt_value_t tt__bessel_j1(tt_build_t *b, tt_value_t x) {
  tt_value_t a = tt__abs(b, x), near = tt__mul(b, CHEBYSHEV(b, near_t(b, a), j1_near), a);
  tt_value_t r = joined(b, x, a, near, bessel_far(b, a, 1, false));
  return tt__select(b, tt__cmpc(b, TT_LT, x, 0), tt__neg(b, r), r);
}
static tt_value_t second_kind(tt_build_t *b, tt_value_t x, tt_value_t near, tt_value_t far) {
  tt_value_t r = joined(b, x, x, near, far);
  r = tt__select_yes(b, tt__cmpc(b, TT_EQ, x, 0), -INFINITY, r);
  return tt__select_yes(b, tt__cmpc(b, TT_LT, x, 0), NAN, r);
}
tt_value_t tt__bessel_y0(tt_build_t *b, tt_value_t x) {
  tt_value_t t = near_t(b, x), log = tt__mulc(b, tt__log(b, x), M_2_PI);
  tt_value_t near = tt__add(b, CHEBYSHEV(b, t, y0_near), tt__mul(b, log, CHEBYSHEV(b, t, j0_near)));
  return second_kind(b, x, near, bessel_far(b, x, 0, true));
}
tt_value_t tt__bessel_y1(tt_build_t *b, tt_value_t x) {
  tt_value_t t = near_t(b, x), j = tt__mul(b, CHEBYSHEV(b, t, j1_near), x);
  tt_value_t log = tt__sub(b, tt__mul(b, tt__log(b, x), j), tt__rdivc(b, 1, x));
  tt_value_t near = tt__add(b, tt__mul(b, CHEBYSHEV(b, t, y1_near), x), tt__mulc(b, log, M_2_PI));
  return second_kind(b, x, near, bessel_far(b, x, 1, true));
}

// Ai: t = x / 4 + 0.5 on [-6, 2]; above, t = 2 (2 / x)^1.5 - 1, factor exp(-k) / (2 sqrt(pi)
// x^0.25); below, (P sin - Q cos)(k + pi / 4) / (sqrt(pi) z^0.25) with z = -x, t = 2 (6 / z)^3 - 1;
// k = 2/3 |x|^1.5.
tt_value_t tt__airy(tt_build_t *b, tt_value_t x) {
  tt_value_t middle =
      CHEBYSHEV(b, affine(b, at_least(b, at_most(b, x, 2), -6), 0.25, 0.5), airy_middle);
  tt_value_t high = at_least(b, x, 2),
             k = tt__mulc(b, tt__mul(b, high, tt__sqrt(b, high)), 2.0 / 3);
  tt_value_t u = tt__rdivc(b, 2, high);
  tt_value_t far = CHEBYSHEV(b, affine(b, tt__mul(b, u, tt__sqrt(b, u)), 2, -1), airy_far);
  tt_value_t scale = tt__mulc(b, tt__sqrt(b, tt__sqrt(b, high)), 4 / M_2_SQRTPI);
  far = tt__div(b, tt__mul(b, far, tt__exp(b, tt__neg(b, k))), scale);
  tt_value_t z = at_least(b, tt__neg(b, x), 6);
  k = tt__mulc(b, tt__mul(b, z, tt__sqrt(b, z)), 2.0 / 3);
  tt_value_t v = tt__rdivc(b, 6, z), t = affine(b, tt__mul(b, v, tt__square(b, v)), 2, -1);
  tt_value_t p = CHEBYSHEV(b, t, airy_p), q = tt__div(b, CHEBYSHEV(b, t, airy_q), k);
  tt_value_t angle = tt__addc(b, k, M_PI_4);
  tt_value_t wave = tt__sub(b, tt__mul(b, p, tt__sin(b, angle)), tt__mul(b, q, tt__cos(b, angle)));
  wave = tt__div(b, wave, tt__mulc(b, tt__sqrt(b, tt__sqrt(b, z)), 2 / M_2_SQRTPI));
  tt_value_t r = tt__select(b, tt__cmpc(b, TT_GT, x, 2), far, middle);
  r = tt__select(b, tt__cmpc(b, TT_LT, x, -6), wave, r);
  return nan_through(b, x, tt__select_yes(b, tt__cmpc(b, TT_EQ, tt__abs(b, x), INFINITY), 0, r));
}
