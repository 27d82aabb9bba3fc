! SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
! Tests what the Fortran face hands to the library; recorder.c sees it. `face_test CASE` runs one case, also
! of checkpoints_face_test.F90.
module face_cases
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int8, int16, int32, int64, real32, real64
  use checks
  use recorder_checks
  use tailrace
  implicit none
  type(tr_stream) :: stream

contains

  ! Expects the last array put to have these extents (C order) and these elements.
  subroutine arrived(what, type, extents, elements)
    character(*), intent(in) :: what
    integer, intent(in) :: type, extents(:)
    integer(int8), intent(in) :: elements(:)
    character(200) :: head
    character(:), allocatable :: line
    integer(int8), pointer :: packed(:)
    integer(c_int64_t) :: bytes
    type(c_ptr) :: at
    write (head, '("tr_stream_put_array [f] type=",i0," extents=",*(i0,:,","))') type, extents
    line = recorded()
    call check(index(line, trim(head)//' strides=') == 1, what//': type and extents; got '//line)
    at = recorder_packed(bytes)
    call c_f_pointer(at, packed, [bytes])
    call check(bytes == size(elements), what//': number of elements; got '//line)
    if (bytes == size(elements)) call check(all(packed == elements), what//': the elements; got '//line)
  end subroutine

#define TR_ARRAYS arrays_i8
#define TR_TYPE integer(int8)
#define TR_CODE TR_I8
#define TR_VALUE(i) int(i - 20, int8)
#include "array_kind.inc"
#define TR_ARRAYS arrays_i16
#define TR_TYPE integer(int16)
#define TR_CODE TR_I16
#define TR_VALUE(i) int(i * 301 - 20, int16)
#include "array_kind.inc"
#define TR_ARRAYS arrays_i32
#define TR_TYPE integer(int32)
#define TR_CODE TR_I32
#define TR_VALUE(i) int(i * 70001, int32)
#include "array_kind.inc"
#define TR_ARRAYS arrays_i64
#define TR_TYPE integer(int64)
#define TR_CODE TR_I64
#define TR_VALUE(i) i * 5000000001_int64
#include "array_kind.inc"
#define TR_ARRAYS arrays_f32
#define TR_TYPE real(real32)
#define TR_CODE TR_F32
#define TR_VALUE(i) real(i, real32) / 8
#include "array_kind.inc"
#define TR_ARRAYS arrays_f64
#define TR_TYPE real(real64)
#define TR_CODE TR_F64
#define TR_VALUE(i) real(i, real64) / 3
#include "array_kind.inc"
#define TR_ARRAYS arrays_c64
#define TR_TYPE complex(real32)
#define TR_CODE TR_C64
#define TR_VALUE(i) cmplx(i, -i, real32) / 3
#include "array_kind.inc"
#define TR_ARRAYS arrays_c128
#define TR_TYPE complex(real64)
#define TR_CODE TR_C128
#define TR_VALUE(i) cmplx(i, -i, real64) / 3
#include "array_kind.inc"

  ! Arrays of every kind and rank arrive whole, sections without a copy.
  subroutine arrays_arrive()
    call arrays_i8()
    call arrays_i16()
    call arrays_i32()
    call arrays_i64()
    call arrays_f32()
    call arrays_f64()
    call arrays_c64()
    call arrays_c128()
  end subroutine

  ! A section is described by its strides, not copied: the library sees the model's own memory.
  subroutine sections_are_not_copied()
    real(real64) :: field(0:9, 0:7, 3)
    field = 0
    call stream%put('f', field(2:7:2, 1:6, :))
    call expect('tr_stream_put_array [f] type=6 extents=3,6,3 strides=640,80,16')
    call stream%put('f', field(1:1, 1:6, 2:2))
    call expect('tr_stream_put_array [f] type=6 extents=1,6,1 strides=480,80,8')
  end subroutine

  integer function by_first_index(index) result(rank)
    integer(int64), intent(in) :: index(:)
    rank = int(100 * index(1) + index(2))
  end function

  ! Shapes, halos, grids and indices arrive in C order and from 0.
  subroutine layouts_are_turned()
    type(tr_layout) :: grid
    call grid%block([20, 30], halo=[1, 2])
    call expect('tr_layout_block shape=30,20 halo=2,1')
    call check(all(grid%lower() == [5, -1]), 'lower, with halo')
    call check(all(grid%upper() == [26, 32]), 'upper, with halo')
    call check(all(grid%own_lower() == [6, 1]), 'own_lower')
    call check(all(grid%own_upper() == [25, 30]), 'own_upper')
    call check(grid%count() == 600, 'count')
    call grid%free()
    call check(.not. c_associated(grid%handle), 'free empties the handle')
    call grid%block([20_int64, 30_int64, 3000000000_int64])
    call expect('tr_layout_block shape=3000000000,30,20 halo=none')
    call grid%block([20, 30], grid=[0, 3])
    call expect('tr_layout_block_grid shape=30,20 halo=none grid=3,0')
    call grid%box([1, 11], [10, 30], [20, 30], halo=[2, 1])
    call expect('tr_layout_box shape=30,20 halo=1,2 lower=10,0 upper=30,10')
    call grid%box(lower=[1_int64, 11_int64], upper=[10_int64, 30_int64], shape=[20_int64, 30_int64])
    call expect('tr_layout_box shape=30,20 halo=none lower=10,0 upper=30,10')
    call grid%boxes(reshape([1, 11, 5, 11], [2, 2]), reshape([4, 30, 10, 20], [2, 2]), [20, 30], halo=[2, 1], unowned=.true.)
    call expect('tr_layout_boxes shape=30,20 halo=1,2 count=2 lower=10,0,10,4 upper=30,4,20,10 unowned=1')
    call grid%boxes(reshape([1_int64, 11_int64], [2, 1]), reshape([4_int64, 30_int64], [2, 1]), [20_int64, 30_int64])
    call expect('tr_layout_boxes shape=30,20 halo=none count=1 lower=10,0 upper=30,4 unowned=0')
    call grid%block_cyclic([20, 30], [4, 5])
    call expect('tr_layout_block_cyclic shape=30,20 block=5,4 grid=none')
    call grid%block_cyclic([20, 30], [4, 5], grid=[1, 2])
    call expect('tr_layout_block_cyclic shape=30,20 block=5,4 grid=2,1')
    call grid%weighted([20, 30], [2, 3], [1.0, 2.0, 3.0, 4.0, 5.5])
    call expect('tr_layout_weighted shape=30,20 halo=none grid=3,2 weights0=3,4,5.5 weights1=1,2')
    call grid%weighted([20, 30], [1, 2], [1.0_real64, 3.0_real64, 4.0_real64], halo=[1, 2])
    call expect('tr_layout_weighted shape=30,20 halo=2,1 grid=2,1 weights0=3,4 weights1=1')
    call grid%indexed([100], [3, 1, 100])
    call expect('tr_layout_indexed shape=100 indices=3,1,100 base=1')
    call grid%indexed([100_int64], [5000000000_int64])
    call expect('tr_layout_indexed shape=100 indices=5000000000 base=1')
    call grid%replicated([4, 3, 2])
    call expect('tr_layout_replicated shape=2,3,4')
    call grid%replicated([integer ::])
    call expect('tr_layout_replicated shape=')
    call grid%callback([20, 30], by_first_index)
    call expect('tr_layout_callback shape=30,20 owner=1211')
    call grid%georeference(sample='climate file.grib2', keys='a=1, b=2', options='Ni=3')
    call expect('tr_layout_georeference [sample="climate file.grib2" keys="a=1, b=2" Ni=3]')
    call grid%dimensions('x,y,z')
    call expect('tr_layout_dimensions [z,y,x]')
    call grid%dimensions('cell')
    call expect('tr_layout_dimensions [cell]')
    call grid%axis('x', [1.5_real64, 2.5_real64], units='m', axis='X', long_name='from the left')
    call expect('tr_layout_axis [x] type=6 count=2 bounds=no [units=m axis=X long_name="from the left"]')
    call grid%axis('z', [1_int32, 2_int32, 3_int32], &
                   bounds=reshape([0_int32, 1_int32, 1_int32, 2_int32, 2_int32, 3_int32], [2, 3]))
    call expect('tr_layout_axis [z] type=3 count=3 bounds=yes []')
    call grid%axis('z', [1_int32, 2_int32, 3_int32], &
                   bounds=reshape([0_int32, 1_int32, 2_int32, 1_int32, 2_int32, 3_int32], [3, 2]))
    call expect('tr_layout_axis [z] type=3 count=-1 bounds=yes []')
  end subroutine

  ! Coordinates arrive with the extents in C order, and the corners of a cell side by side.
  subroutine coordinates_arrive()
    type(tr_layout) :: grid
    real(real64) :: latitudes(3, 2), bounds(4, 3, 2)
    integer :: i, ierr
    call grid%block([3, 2])
    latitudes = reshape([(real(i, real64), i=1,6)], [3, 2])
    bounds = spread(latitudes, 1, 4)
    bounds(2,:,:) = bounds(2,:,:) + 0.5_real64
    call grid%coordinates(latitudes, latitudes + 10)
    call expect('tr_layout_coordinates_array extents=2,3 first=1,11 corners=0')
    call grid%coordinates(latitudes(2:,:), latitudes(2:,:) + 10, bounds(:,2:,:), bounds(:,2:,:) + 10)
    call expect('tr_layout_coordinates_array extents=2,2 first=2,12 corners=4 second corner=2.5,12.5')
    call grid%coordinates(latitudes(:,1), latitudes(:,2), bounds(:,:,1), bounds(:,:,2))
    call expect('tr_layout_coordinates_array extents=3 first=1,4 corners=4 second corner=1.5,4.5')
    call grid%coordinates(latitudes, latitudes, latitude_bounds=bounds, ierr=ierr)
    call expect('tr_layout_coordinates_array no extents')
    call grid%coordinates(latitudes, latitudes(:,:1), ierr=ierr)
    call expect('tr_layout_coordinates_array no extents')
  end subroutine

  ! Bounds fill arrays of either integer kind. A bound that does not fit is an error, not a wrong number.
  subroutine bounds_fit()
    type(tr_layout) :: grid
    integer(int32) :: lower4(2), upper4(2)
    integer(int64) :: lower8(2), upper8(2), short(1)
    integer :: ierr
    call grid%block([20_int64, 3000000000_int64], halo=[1_int64, 0_int64])
    call grid%bounds(lower8, upper8)
    call check(all(lower8 == [5_int64, 1_int64]) .and. all(upper8 == [26_int64, 3000000000_int64]), 'int64')
    call grid%bounds(lower8, upper8, halo=.false., ierr=ierr)
    call check(ierr == TR_OK .and. all(lower8 == [6_int64, 1_int64]), 'int64 without halo')
    call grid%bounds(lower4, upper4, ierr=ierr)
    call refused(ierr, TR_ERR_ARGUMENT, '3000000000 does not fit')
    call grid%bounds(short, upper8, ierr=ierr)
    call refused(ierr, TR_ERR_ARGUMENT, '1 entries')
  end subroutine

  ! The library refuses arrays that do not match, so all ranks do. The text says what was wrong here.
  subroutine mismatches_are_errors()
    type(tr_layout) :: grid
    integer :: ierr
    call grid%block([20, 30], halo=[1, 2, 3], ierr=ierr)
    call refused(ierr, TR_ERR_ARGUMENT, 'halo has 3 entries, but shape has 2')
    call grid%box([1], [10, 30], [20, 30], ierr=ierr)
    call refused(ierr, TR_ERR_ARGUMENT, 'lower has 1 entries')
    call grid%weighted([20, 30], [2, 3], [1.0, 2.0], ierr=ierr)
    call refused(ierr, TR_ERR_ARGUMENT, 'grid=[2,3]')
    call grid%block([integer ::], ierr=ierr)
    call refused(ierr, TR_ERR_ARGUMENT, '1 to 7 dimensions, not 0')
  end subroutine

  ! Options arrive as the options strings of tailrace.h, quoted where needed.
  subroutine options_are_written()
    character(20) :: padded
    padded = 'ccsds'
    call stream%create('fc_{lead:03h}  ', base='2026-03-01T00:00Z', packing=padded, keys='centre=98, x=1', &
                       member=7, members=51_int64, on_full='wait:10m', options='ready=.ok')
    call expect('tr_stream_create [fc_{lead:03h}] [base=2026-03-01T00:00Z packing=ccsds member=7'// &
                ' members=51 on_full=wait:10m keys="centre=98, x=1" ready=.ok]')
    call stream%create('x', hook='say "done"', calendar='', format='raw')
    call expect('tr_stream_create [x] [format=raw calendar="" hook="say ""done"""]')
    call stream%create('x', manifest='off', same_lead='keep', empty_step='keep', keys='centre=98', options='ready=.ok', &
                       method='mpiio', mpiio_hints='cb_nodes=2')
    call expect('tr_stream_create [x] [manifest=off same_lead=keep empty_step=keep method=mpiio mpiio_hints=cb_nodes=2'// &
                ' keys=centre=98 ready=.ok]')
    call stream%create('x.nc4', attributes='title="a run", source=me', compress='deflate:4')
    call expect('tr_stream_create [x.nc4] [attributes="title=""a run"", source=me" compress=deflate:4]')
    call stream%create('x.grib2', index='wgrib2,ecmwf')
    call expect('tr_stream_create [x.grib2] [index=wgrib2,ecmwf]')
    call stream%create('x', interval='1h', conventions='weather')
    call expect('tr_stream_create [x] [interval=1h conventions=weather]')
    call stream%begin(lead=3600)
    call expect('tr_stream_begin lead=3600')
    call stream%begin(lead=5000000000_int64)
    call expect('tr_stream_begin lead=5000000000')
    call stream%begin_at(0.5_real64)
    call expect('tr_stream_begin_at time=0.5')
    call stream%create('x{time}', time='model', time_units='days', time_name='Times', lead_unit='ms')
    call expect('tr_stream_create [x{time}] [time=model lead_unit=ms time_units=days time_name=Times]')
    call stream%wait(TR_DURABLE)
    call expect('tr_stream_wait event=2')
  end subroutine

  ! The library fills the caller's own memory, sections too: element by element in array element order.
  subroutine reading_fills_arrays()
    type(tr_layout) :: grid
    real(real32) :: line(4)
    real(real64) :: field(0:9, 0:7, 3)
    real(real32), target :: whole(2)
    integer :: ierr, i
    call stream%configure('output.yaml', base='2026-03-01T00:00Z')
    call expect('tr_streams_configure [output.yaml] [base=2026-03-01T00:00Z]')
    call stream%configure('o', options='format=raw', ierr=ierr, time='leads', lead_unit='ms', calendar='360_day')
    call expect('tr_streams_configure [o] [time=leads lead_unit=ms calendar=360_day format=raw]')
    call check(stream%wants('wanted') .and. .not. stream%wants('other'), 'which fields a stream wants')
    call expect('tr_stream_wants [other]')
    call stream%open('bd_{lead:03h}', base='2026-03-01T00:00Z', prefetch=2)
    call expect('tr_stream_open [bd_{lead:03h}] [base=2026-03-01T00:00Z prefetch=2]')
    call stream%open('x', calendar='360_day', member=3, prefetch=4_int64, between='linear', follow='on', timeout='10m', &
                     options='format=raw', ierr=ierr, time='leads', lead_unit='ms')
    call expect('tr_stream_open [x] [time=leads lead_unit=ms calendar=360_day member=3 prefetch=4 between=linear ' // &
                'follow=on timeout=10m format=raw]')
    call grid%block([20, 30])
    call stream%define('t', grid, tr_hybrid(40), type=TR_F32)
    call expect('tr_stream_define [t] type=5 [levels=hybrid:1-40]')
    line = 0
    call stream%get('f', line)
    call expect('tr_stream_get_array [f] type=5 extents=4 strides=4')
    call check(all(line == [1.0_real32, 2.0_real32, 3.0_real32, 4.0_real32]), 'a whole array')
    call stream%get('f', line(4:1:-3), ierr)
    call check(all(line == [2.0_real32, 2.0_real32, 3.0_real32, 1.0_real32]), 'every third element, backwards')
    call stream%get('f', line(2))
    call expect('tr_stream_get_array [f] type=5 extents= strides=')
    call check(line(2) == 1, 'a scalar')
    field = 0
    call stream%get('f', field(2:7:2, 1:6, 1:1))
    call expect('tr_stream_get_array [f] type=6 extents=1,6,3 strides=480,80,16')
    call check(all(field(2:6:2, 1:6, 1) == reshape([(real(i, real64), i=1, 18)], [3, 6])), 'the elements of a section')
    call check(count(field > 0) == 18, 'and no others')
    call stream%get('f', field(:, 3:2, :))
    call expect('tr_stream_get_array [f] type=6 extents=3,0,10 strides=80,80,8')
    call stream%get_address('f', c_loc(whole))
    call expect('tr_stream_get [f]')
    call stream%seek(lead=-3600)
    call expect('tr_stream_seek lead=-3600')
    call stream%seek(5000000000_int64, ierr)
    call expect('tr_stream_seek lead=5000000000')
  end subroutine

  subroutine definitions_are_written()
    type(tr_layout) :: grid
    character(4) :: real_type
    write (real_type, '(i0)') TR_REAL
    call grid%block([20, 30])
    call stream%define('t', grid, tr_surface(), accuracy=0.01)
    call expect('tr_stream_define [t] type='//trim(real_type)//' [levels=surface accuracy=0.01]')
    call stream%attribute('t', 'flag_values', [3_int8, 4_int8])
    call expect('tr_stream_attribute [t] [flag_values] type=1 count=2 first=3')
    call stream%attribute('', 'revision', 7_int64)
    call expect('tr_stream_attribute [] [revision] type=4 count=1 first=7')
    call stream%attribute('t', 'valid_range', [0.5_real64, 400.0_real64])
    call expect('tr_stream_attribute [t] [valid_range] type=6 count=2 first=0.5')
    call stream%attribute('t', 'limit', 2.5_real32)
    call expect('tr_stream_attribute [t] [limit] type=5 count=1 first=2.5')
    call stream%attribute('t', 'comment', 'at noon ')
    call expect('tr_stream_attribute_text [t] [comment] [at noon]')
    call stream%define('t', grid, tr_surface(), type=TR_I16, accuracy=0.1_real64, missing=-9999, &
                       bits=12_int8, statistic='accum', since='start', at_zero='omit', keys='a=1', &
                       options='b=2')
    call expect('tr_stream_define [t] type=2 [levels=surface accuracy=0.1 bits=12 missing=-9999'// &
                ' statistic=accum since=start at_zero=omit keys=a=1 b=2]')
    call stream%define('t', grid, type=TR_F64, relative_accuracy=1e-7_real32, missing=-1e20_real64)
    call expect('tr_stream_define [t] type=6 [relative_accuracy=1.E-0007 missing=-1.E+0020]')
    call stream%define('t', grid, tr_surface(), type=TR_F64, operation='mean', over='sum:x,levels', &
      weights='area')
    call expect('tr_stream_define [t] type=6 [levels=surface operation=mean over=sum:x,levels weights=area]')
    call stream%define('t', grid, type=TR_F64, attributes='units=mm, long_name="all rain"', compress='none', chunks='10x20')
    call expect('tr_stream_define [t] type=6 [attributes="units=mm, long_name=""all rain""" compress=none chunks=10x20]')
    call stream%define('t', grid, tr_levels('hybrid'), type=TR_F64, vertical='ab.txt')
    call expect('tr_stream_define [t] type=6 [levels=hybrid vertical=ab.txt]')
    call stream%define('t', grid, type=TR_F64, units='m s-1', standard_name='eastward_wind', long_name='wind, from the west')
    call expect('tr_stream_define [t] type=6 [units="m s-1" standard_name=eastward_wind long_name="wind, from the west"]')
    call stream%define('t', grid, tr_levels('depthBelowLandLayer', [0.0, 0.1]), type=TR_F64, bottom='0.1,0.4', &
                       interval='6h', percentile=90, name_in_file='tp')
    call expect('tr_stream_define [t] type=6 [levels=depthBelowLandLayer:0,0.1 bottom=0.1,0.4 interval=6h percentile=90'// &
                ' name=tp]')
    call stream%define('t', grid, type=TR_F64, level_dim=1, nproma=32)
    call expect('tr_stream_define [t] type=6 [level_axis=2 nproma=32]')
    call stream%define('t', grid, type=TR_F64, level_dim=3)
    call expect('tr_stream_define [t] type=6 [level_axis=0]')
    call grid%indexed([20, 30], [1, 2, 3])
    call stream%define('t', grid, type=TR_F64, level_dim=2)
    call expect('tr_stream_define [t] type=6 [level_axis=0]')
    call grid%block_cyclic([20, 30], [4, 5])
    call stream%define('t', grid, type=TR_F64, level_dim=1)
    call expect('tr_stream_define [t] type=6 [level_axis=1]')
    call stream%define('t', grid, type=TR_F64, accuracy='low')
    call expect('tr_stream_define [t] type=6 [accuracy=low]')
    call stream%define('t', grid, type=TR_F64, accuracy=.true.)
    call expect('tr_stream_define [t] type=6 [accuracy=<not-a-number>]')
    call stream%define('t', grid, type=TR_F64, accuracy='auto', information=0.999)
    call expect('tr_stream_define [t] type=6 [accuracy=auto information=0.999]')
    call stream%define('t', grid, type=TR_F64, section=tr_section([2, 3], [19, 30], [3, 1]))
    call expect('tr_stream_define [t] type=6 [section=2:30:1,1:19:3]')
    call stream%define('t', grid, type=TR_F64, section=tr_section([2, 3], [19]))
    call expect('tr_stream_define [t] type=6 [section=1:19:0]')
  end subroutine

  subroutine levels_are_written()
    type(tr_layout) :: grid
    real(real64), parameter :: a(3) = [0.0_real64, 0.1_real64 + 0.2_real64, 1.0_real64]
    real(real64), parameter :: b(3) = [0.0_real64, 1.0_real64 / 3.0_real64, 1.0_real64]
    call grid%block([20, 30])
    call expect_levels(tr_hybrid(40), 'levels=hybrid:1-40')
    call expect_levels(tr_hybrid(2, [0.0, 0.5, 100000.0], [0.0, 0.1, 1.0]), &
                       'levels=hybrid:1-2 coefficients=0,0.5,100000,0,0.1,1')
    call expect_levels(tr_hybrid(2_int64, a, b, levels=[2]), &
                       'levels=hybrid:2 coefficients=0,0.30000000000000004,1,0,0.3333333333333333,1')
    call expect_levels(tr_pressure([1000, 850, 500]), 'levels=pressure:1000,850,500')
    call expect_levels(tr_pressure([0.5_real64, 0.01_real64]), 'levels=pressure:0.5,0.01')
    call expect_levels(tr_height(2), 'levels=height:2')
    call expect_levels(tr_height([2.0, 10.0]), 'levels=height:2,10')
    call expect_levels(tr_levels('depthBelowLand', 0.05), 'levels=depthBelowLand:0.05')
    call expect_levels(tr_levels('theta', [300_int64, 315_int64]), 'levels=theta:300,315')
    call expect_levels(tr_levels('meanSea'), 'levels=meanSea')
    call expect_levels(tr_surface(), 'levels=surface')
  contains
    subroutine expect_levels(levels, text)
      type(tr_levels), intent(in) :: levels
      character(*), intent(in) :: text
      call stream%define('t', grid, levels, type=TR_F32)
      call expect('tr_stream_define [t] type=5 ['//text//']')
    end subroutine
  end subroutine

  ! Every number is written with enough digits to read back to itself.
  subroutine numbers_keep_their_value()
    type(tr_layout) :: grid
    real(real64) :: x, again
    real(real32) :: y, again4
    integer :: i, at
    character(:), allocatable :: line
    call grid%block([20, 30])
    do i = -300, 300, 7
      x = (1 + modulo(i * 0.377_real64, 1.0_real64)) * 10.0_real64**i
      call stream%define('t', grid, accuracy=x)
      line = recorded()
      at = index(line, 'accuracy=') + 9
      read (line(at:len(line) - 1), *) again
      call check(.not. (again < x .or. again > x), line)
    end do
    do i = -36, 36
      y = (1 + modulo(i * 0.377_real32, 1.0_real32)) * 10.0_real32**i
      call stream%define('t', grid, accuracy=y)
      line = recorded()
      at = index(line, 'accuracy=') + 9
      read (line(at:len(line) - 1), *) again4
      call check(.not. (again4 < y .or. again4 > y), line)
    end do
  end subroutine

  subroutine communicators_pass()
    integer(int32) :: compute4
    integer(int64) :: compute8
    call tr_init(17_int32, compute4)
    call expect('tr_init world=17 options=[]')
    call check(compute4 == 18, 'the compute communicator, int32')
    call tr_init(17_int64, compute8, 'servers=1')
    call expect('tr_init world=17 options=[servers=1]')
    call check(compute8 == 18, 'the compute communicator, int64')
    call tr_finalize()
    call expect('tr_finalize')
    call check(tr_version() == '0.1.0', 'the version')
  end subroutine

  ! The recorder's answers: no, and from then on yes.
  subroutine stopping_is_asked()
    call check(.not. tr_should_stop(), 'the first answer')
    call expect('tr_should_stop')
    call check(tr_should_stop(), 'the second answer')
    call expect('tr_should_stop')
  end subroutine

#ifndef TAILRACE_NO_MPI_F08
  subroutine typed_communicators_pass()
    use mpi_f08, only: MPI_Comm
    type(MPI_Comm) :: world, compute
    integer :: ierr
    world%MPI_VAL = 41
    call tr_init(world, compute, options='staging=1GiB', ierr=ierr)
    call expect('tr_init world=41 options=[staging=1GiB]')
    call check(compute%MPI_VAL == 42 .and. ierr == TR_OK, 'the compute communicator, mpi_f08')
  end subroutine
#endif

  ! Inside a bracket an error without ierr is kept for end; elsewhere (see stops.sh) it stops.
  subroutine brackets_keep_errors()
    integer :: ierr
    real :: field(2)
    field = 1
    call stream%begin(lead=0)
    call stream%put('f', field)
    call stream%put('f', field, ierr)
    call refused(ierr, TR_ERR_IO, 'tr_stream_put: refused by the recorder')
    call stream%end(ierr)
    call check(ierr == TR_OK, 'end')
  end subroutine

  subroutine stop_at_end()
    call stream%end()
  end subroutine

end module face_cases

program face_test
  use face_cases
  use checkpoint_cases
  use encoder_cases
  implicit none
  character(40) :: name
  call get_command_argument(1, name)
  call stream%create('x')
  select case (name)
  case ('arrays_arrive');            call arrays_arrive()
  case ('sections_are_not_copied');  call sections_are_not_copied()
  case ('layouts_are_turned');       call layouts_are_turned()
  case ('coordinates_arrive');       call coordinates_arrive()
  case ('bounds_fit');               call bounds_fit()
  case ('mismatches_are_errors');    call mismatches_are_errors()
  case ('options_are_written');      call options_are_written()
  case ('reading_fills_arrays');     call reading_fills_arrays()
  case ('definitions_are_written');  call definitions_are_written()
  case ('levels_are_written');       call levels_are_written()
  case ('numbers_keep_their_value'); call numbers_keep_their_value()
  case ('communicators_pass')
    call communicators_pass()
#ifndef TAILRACE_NO_MPI_F08
    call typed_communicators_pass()
#endif
  case ('stopping_is_asked');        call stopping_is_asked()
  case ('brackets_keep_errors');     call brackets_keep_errors()
  case ('stop_at_end');              call stop_at_end()
  case ('items_round_trip');         call items_round_trip()
  case ('items_are_not_copied');     call items_are_not_copied()
  case ('checkpoints_are_written');  call checkpoints_are_written()
  case ('sections_are_items');       call sections_are_items()
  case ('wrong_items_end_in_errors'); call wrong_items_end_in_errors()
  case ('items_keep_errors');        call items_keep_errors()
  case ('registered_variables_pass'); call registered_variables_pass()
  case ('fortran77_checkpoints');    call fortran77_checkpoints()
  case ('encoders_are_called');      call encoders_are_called()
  case default;                      call check(.false., 'there is a case named '//name)
  end select
  if (failures > 0) error stop 1
end program face_test
